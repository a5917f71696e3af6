import { matchesGlob } from "node:path";
import { expect, test } from "vitest";
import { ALONE, currentRun, propertyFiles, SHARED, SLOW, SLOW_SHARED, testFiles } from "./test-split.ts";

const files = testFiles();

test.each(SLOW)("%s names existing tests", (glob) => {
  expect(files.some((file) => matchesGlob(file, glob))).toBe(true);
});

test.each([...SHARED, ...ALONE])("%s names existing tests", (glob) => {
  expect(files.some((file) => matchesGlob(file, glob))).toBe(true);
});

test("most files are in the run for every change", () => {
  const slow = files.filter((file) => SLOW.some((glob) => matchesGlob(file, glob)));
  expect(slow.length).toBeGreaterThan(10);
  expect(slow.length).toBeLessThan(files.length / 3);
});

test.each(SLOW_SHARED)("%s names tests that run in one process", (glob) => {
  const found = files.filter((file) => matchesGlob(file, glob));
  for (const file of found) {
    expect(SHARED.some((shared) => matchesGlob(file, shared))).toBe(true);
    expect(ALONE.some((alone) => matchesGlob(file, alone))).toBe(false);
  }
});

test("properties without a number of cases are known", () => {
  expect(propertyFiles()).toContain("packages/store/src/read-cache.test.ts");
  expect(propertyFiles()).not.toContain("tools/tally.test.ts");
});

test.each([
  ["test", "fast"],
  ["test:slow", "slow"],
  ["test:watch", "named"],
  [undefined, "named"],
])("the script %s runs the %s tests", (script, run) => {
  // Without a script, `currentRun` would read the npm script that runs this test.
  expect(currentRun(script ?? "")).toBe(run);
});
