import { describe, expect, test } from "vitest";
import { type DefinitionFacts, definitionFault, usedBy } from "./definition.ts";

test.each([
  ["tools/call", { name: "report" }, { list: "tools", name: "report" }],
  ["tools/call", { name: 7 }, { list: "tools", name: "" }],
  ["prompts/get", { name: "brief" }, { list: "prompts", name: "brief" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "brief" } }, { list: "prompts", name: "brief" }],
  ["completion/complete", { ref: { type: "ref/resource", uri: "a://b" } }, undefined],
  ["completion/complete", { ref: null }, undefined],
  ["resources/read", { uri: "a://b" }, undefined],
])("%s %j uses %j", (method, params, used) => {
  expect(usedBy(method, params)).toEqual(used);
});

describe("a definition", () => {
  const facts: DefinitionFacts = {
    currentDigest: "A",
    pinned: undefined,
    listedDigest: undefined,
    hasChanged: false,
  };

  test.each<[string, Partial<DefinitionFacts>]>([
    ["that the caller was shown", { listedDigest: "A" }],
    ["that the caller was shown after it changed", { listedDigest: "A", hasChanged: true }],
    ["that has never changed, for a caller that has not listed", {}],
    ["that the tool map pins, for a caller that has not listed", { pinned: "A", hasChanged: true }],
    ["that the tool map pins and the caller was shown", { pinned: "A", listedDigest: "A" }],
  ])("%s passes", (_, more) => {
    expect(definitionFault("tools", { ...facts, ...more })).toBe(undefined);
  });

  test.each<[string, Partial<DefinitionFacts>, string]>([
    [
      "that the server does not list",
      { currentDigest: undefined, listedDigest: "A" },
      "does not exist on the server",
    ],
    [
      "that is another than the caller was shown",
      { listedDigest: "B", hasChanged: true },
      "since the caller listed it",
    ],
    [
      "that the map pins, but the caller was shown another",
      { pinned: "A", listedDigest: "B" },
      "since the caller listed it",
    ],
    [
      "that is another than the map pins",
      { pinned: "B", listedDigest: "A" },
      "the one that the tool map pins",
    ],
    ["that has changed, for a caller that has not listed", { hasChanged: true }, "list first"],
  ])("%s is refused", (_, more, fault) => {
    expect(definitionFault("tools", { ...facts, ...more })).toContain(fault);
  });
});
