import fc from "fast-check";
import { expect, test } from "vitest";
import { SESSION_WINDOW } from "../limits.ts";
import { ReplayWindow } from "./replay-window.ts";

test("property: agrees with a list of all used numbers, for recent ones", () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: -40, max: 40 }), fc.integer({ min: -1100, max: 2200 })), {
    maxLength: 200,
    size: "max",
  });
  fc.assert(
    fc.property(steps, (all) => {
      const [window, used] = [new ReplayWindow(), new Set<number>()];
      let highest = 0;
      for (const step of all) {
        const number = highest + step;
        const expected = number >= 1 && highest - number < SESSION_WINDOW && !used.has(number);
        expect(window.isFresh(number)).toBe(expected);
        expect(window.use(number)).toBe(expected);
        if (expected) used.add(number);
        if (expected) highest = Math.max(highest, number);
      }
    }),
    { numRuns: 300 },
  );
});

test.each([0, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, "1" as never, undefined as never])(
  "%s is not a call number",
  (number) => {
    const window = new ReplayWindow();
    expect(window.use(number)).toBe(false);
    expect(window.use(1)).toBe(true);
  },
);

test("the highest number is used once, and ends the numbers", () => {
  const window = new ReplayWindow();
  expect(window.use(1)).toBe(true);
  expect(window.use(Number.MAX_SAFE_INTEGER)).toBe(true);
  expect(window.use(Number.MAX_SAFE_INTEGER)).toBe(false);
  expect(window.use(Number.MAX_SAFE_INTEGER - 1)).toBe(true);
  expect(window.use(2)).toBe(false);
});
