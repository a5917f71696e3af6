import { expect, test } from "vitest";
import { durationText, relativeText } from "./time.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [2_400, "2.4 s"],
  [59_000, "59 s"],
  [60_000, "1 min"],
  [61_500, "1 min 1 s"],
  [3_900_000, "1 h 5 min"],
  [90_000_000, "1 d 1 h"],
])("%i ms is %s", (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

test.each([
  [1_000_000, "now"],
  [995_000, "5 s ago"],
  [1_180_000, "in 3 min"],
])("a time is shown relative to the present", (time, text) => {
  expect(relativeText(time, 1_000_000)).toBe(text);
});
