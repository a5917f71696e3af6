import fc from "fast-check";
import { expect, test } from "vitest";
import { take } from "./rate.ts";

/** Takes one at each time, and returns the times at which it was given. */
function given(perSecond: number, times: readonly number[]): number[] {
  let dueMs = 0;
  return times.filter((nowMs) => {
    const taken = take(perSecond, dueMs, nowMs);
    if ("dueMs" in taken) dueMs = taken.dueMs;
    return "dueMs" in taken;
  });
}

const RATES = fc.integer({ min: 1, max: 1000 });

test("a full quota gives the calls of one second at once, and no more", () => {
  fc.assert(
    fc.property(RATES, (rate) => {
      expect(given(rate, Array(2 * rate).fill(5000)).length).toBe(rate);
    }),
  );
});

test("no window of time has more than its calls and the burst", () => {
  const gaps = fc.array(fc.integer({ min: 0, max: 300 }), { maxLength: 300 });
  fc.assert(
    fc.property(RATES, gaps, (rate, steps) => {
      let nowMs = 1_000_000;
      const times = given(
        rate,
        steps.map((gap) => (nowMs += gap)),
      );
      for (const [i, from] of times.entries()) {
        const last = times.at(-1) ?? from;
        expect(times.length - i).toBeLessThanOrEqual(rate + ((last - from) * rate) / 1000 + 1e-6);
      }
    }),
  );
});

test("a refused call succeeds after the stated wait", () => {
  fc.assert(
    fc.property(RATES, fc.integer({ min: 0, max: 999 }), (rate, waitedMs) => {
      let dueMs = 0;
      for (let i = 0; i < rate; i++) dueMs = (take(rate, dueMs, 0) as { dueMs: number }).dueMs;
      const refused = take(rate, dueMs, waitedMs);
      if (!("retryAfterMs" in refused)) return;
      expect(take(rate, dueMs, waitedMs + refused.retryAfterMs)).toHaveProperty("dueMs");
      expect(take(rate, dueMs, waitedMs + refused.retryAfterMs - 2)).toHaveProperty("retryAfterMs");
    }),
  );
});
