import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { changeOf } from "./compare.ts";
import { lastRun, type Result, saveRun } from "./results.ts";
import { summaryRows } from "./summary.ts";

const result = (value: number, more: Partial<Result> = {}): Result => ({
  ...{ suite: "s", benchmark: "b", name: "n", unit: "us", value },
  ...more,
});

test.each<[string, Result, Result, number]>([
  ["a rise above the spreads", result(100, { spread: 5 }), result(120, { spread: 5 }), 0.2],
  ["a fall above the spreads", result(100, { spread: 5 }), result(80, { spread: 5 }), -0.2],
  ["a rise within the spreads", result(100, { spread: 10 }), result(120, { spread: 15 }), 0],
  ["a small rise of a steady value", result(100, { spread: 0 }), result(104, { spread: 0 }), 0],
  ["a rise above 5 % of a steady value", result(100, { spread: 0 }), result(106, { spread: 0 }), 0.06],
  ["a rise of a quarter without spread", result(100), result(125), 0],
  ["a larger rise without spread", result(100), result(130), 0.3],
  [
    "the same ratio on a slower machine",
    result(100, { spread: 1, ratio: 4 }),
    result(200, { spread: 2, ratio: 4 }),
    0,
  ],
  ["another ratio", result(100, { spread: 1, ratio: 4 }), result(100, { spread: 1, ratio: 5 }), 0.25],
  ["a value from nothing", result(0), result(5), 0],
  ["a value that is no number", result(Number.NaN), result(5), 0],
])("%s is a change of", (_, before, after, change) => {
  expect(changeOf(before, after)).toBeCloseTo(change, 10);
});

test("the table marks the changes since the last run that was saved", () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-results-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  expect(lastRun(folder)).toBeUndefined();
  const run = (time: string, value: number) => {
    return { time, commit: "c", failed: {}, results: [result(value, { spread: 1 })] };
  };
  saveRun(run("2026-01-02T00:00:00.000Z", 100), folder);
  saveRun(run("2026-01-01T00:00:00.000Z", 10), folder);
  const goal = { text: "met: goal at most 200", isMet: true };
  const row = ["s", "b", "n", "130.0 us", "+-0 %", "", goal.text];
  expect(summaryRows([result(130, { spread: 1, goal })], lastRun(folder))).toEqual([[...row, "+30 %"]]);
  expect(summaryRows([result(130, { spread: 1, goal })], undefined)).toEqual([[...row, ""]]);
});
