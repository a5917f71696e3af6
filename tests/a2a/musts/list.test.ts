import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** The number of MUSTs of A2A 1.0.1 in the order of the specification, after duplicates were merged. */
const COUNT = 90;

/** MUSTs that bind other parties, or that other tests decide: each with the reason or the file. */
const ELSEWHERE: Readonly<Record<number, string>> = {
  13: "binds readers of a card; tests/a2a/card.test.ts reads one with the official library",
  14: "binds readers of a card",
  30: "a stream is always that of a task; tests/a2a/bindings.test.ts decides for bare messages",
  37: "binds the design of agents; results are artifacts, and messages carry questions alone",
  41: "tests/a2a/bindings.test.ts: a request for an authorization, with its text",
  42: "binds the work that asks: how it gets credentials is its own rule",
  43: "binds the work that asks: the platform hands it the answer, and grants nothing itself",
  44: "binds the work that asks: the platform stores and reuses no such credential",
  56: "binds receivers of webhooks",
  74: "binds SDKs",
  75: "tests/tls/platform.test.ts",
  79: "packages/service/src/log.test.ts",
  80: "binds operators",
  89: "the platform has no binding of its own",
  90: "tests/a2a/bindings.test.ts: clients of the published contract work with proto/lf/a2a/v1",
};

/** The numbers of the MUSTs that the tests of this folder name. */
const tested = globSync("*.test.ts", { cwd: import.meta.dirname })
  .map((file) => readFileSync(join(import.meta.dirname, file), "utf8"))
  .flatMap((source) => [...source.matchAll(/\bmust\(\s*\[([\d, \n]+)\]/g)])
  .flatMap(([, numbers = ""]) => numbers.split(",").map(Number));

test("each MUST has a test or a reason, and none has both", () => {
  const numbers = [...tested, ...Object.keys(ELSEWHERE).map(Number)].sort((one, other) => one - other);
  expect(numbers).toEqual(Array.from({ length: COUNT }, (_, index) => index + 1));
});

test("each file that a reason names exists", () => {
  const files = Object.values(ELSEWHERE).flatMap((reason) => /\S+\.test\.ts/.exec(reason)?.[0] ?? []);
  expect(files.filter((file) => !existsSync(file))).toEqual([]);
});
