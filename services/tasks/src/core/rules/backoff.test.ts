import { expect, test } from "vitest";
import { backoffMs, MAX_ATTEMPTS } from "./backoff.ts";

test("waits grow up to an hour, for a limited number of attempts", () => {
  const waits = Array.from({ length: MAX_ATTEMPTS }, (_, at) => backoffMs(at + 1, 0));
  expect(waits.slice(0, 4)).toEqual([1000, 2000, 4000, 8000]);
  expect(waits.at(-1)).toBeUndefined();
  expect(Math.max(...waits.map((wait) => wait ?? 0))).toBeLessThanOrEqual(3_600_000);
});

test("the random part is at most half of a wait", () => {
  expect([backoffMs(3, 0), backoffMs(3, 0.5), backoffMs(3, 1)]).toEqual([4000, 3000, 2000]);
});
