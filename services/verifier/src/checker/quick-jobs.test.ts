import { expect, test } from "vitest";
import { QuickJobs } from "./quick-jobs.ts";

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
])("is a key quick after runs of %j ms? %j", (runs, quick) => {
  const quickJobs = new QuickJobs();
  for (const ms of runs) quickJobs.record("key", ms);
  expect(quickJobs.isQuick("key")).toBe(quick);
  expect(quickJobs.isQuick("other")).toBe(false);
});

test("jobs without a key are never quick", () => {
  const quickJobs = new QuickJobs();
  quickJobs.record(undefined, 1);
  expect(quickJobs.isQuick(undefined)).toBe(false);
});
