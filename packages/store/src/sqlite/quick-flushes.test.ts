import { expect, test } from "vitest";
import { QuickFlushes } from "./quick-flushes.ts";

const after = (durations: readonly number[]) => {
  const flushes = new QuickFlushes();
  for (const ms of durations) if (flushes.mayBlock) flushes.took(ms);
  return flushes.mayBlock;
};
const repeated = (count: number, ...durations: readonly number[]) =>
  Array.from({ length: count }, () => durations).flat();

test.each<[title: string, durations: readonly number[], mayBlock: boolean]>([
  ["before the first flush", [], true],
  ["after quick flushes", repeated(1000, 0.02), true],
  ["after two slow flushes", [1, 1], true],
  ["after a third slow flush", [1, 1, 1], false],
  ["after a single long flush", [...repeated(1000, 0.02), 5], false],
  ["if one flush in ten is interrupted", repeated(1000, ...repeated(9, 0.02), 3), true],
  ["if one flush in five is slow", repeated(1000, ...repeated(4, 0.02), 3), false],
  ["if quick flushes follow long ones", [6, ...repeated(1000, 0.02)], false],
])("flushes may block the event loop %s: %j", (_title, durations, mayBlock) => {
  expect(after(durations)).toBe(mayBlock);
});
