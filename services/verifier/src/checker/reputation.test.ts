import { expect, test } from "vitest";
import { Reputation } from "./reputation.ts";

test.each<[runs: number[], quick: boolean]>([
  [[], false],
  [[1], true],
  [[49.9], true],
  [[50], false],
  [[500], false],
  [[500, 1], true],
  [[1, 60], true],
  [[1, 249, 1, 1], true],
  [[1, 250, 1, 1], false],
  [[Number.POSITIVE_INFINITY], false],
  [[Number.POSITIVE_INFINITY, 1, 1], false],
  [[1, Number.POSITIVE_INFINITY, 1], false],
])("after runs of %j ms a key is quick: %j", (runs, quick) => {
  const reputation = new Reputation();
  for (const ms of runs) reputation.ran("key", ms);
  expect(reputation.isQuick("key")).toBe(quick);
  expect(reputation.isQuick("other")).toBe(false);
});

test("without a key nothing is known", () => {
  const reputation = new Reputation();
  reputation.ran(undefined, 1);
  expect(reputation.isQuick(undefined)).toBe(false);
});
