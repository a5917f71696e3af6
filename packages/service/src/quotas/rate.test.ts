import fc from "fast-check";
import { expect, test } from "vitest";
import { take, use, waitOf } from "./rate.ts";

/** Counts one call at each of `times`, and returns the times at which the rate allowed the call. */
function given(perSecond: number, times: readonly number[]): number[] {
  let dueMs = 0;
  return times.filter((nowMs) => {
    const taken = take(perSecond, dueMs, nowMs);
    if ("dueMs" in taken) dueMs = taken.dueMs;
    return "dueMs" in taken;
  });
}

const RATES = fc.integer({ min: 1, max: 1000 });

test("a full quota allows the calls of one second at once", () => {
  fc.assert(
    fc.property(RATES, (rate) => {
      expect(given(rate, Array(2 * rate).fill(5000)).length).toBe(rate);
    }),
  );
});

test("any window of time has at most its calls and the burst", () => {
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

test.each([
  ["a full quota", 0, 0],
  ["less than the burst", 999, 0],
  ["the whole burst", 1_000, 1],
  ["twice the burst", 2_000, 1_001],
  ["an hour of the rate", 3_600_000, 3_599_001],
])("after %s, the quota has room in the stated time", (_, amount, waitMs) => {
  const dueMs = use(1_000, 0, 5_000, amount);
  expect(waitOf(dueMs, 5_000)).toBe(waitMs);
  expect(waitOf(dueMs, 5_000 + waitMs)).toBe(0);
  if (waitMs > 0) expect(waitOf(dueMs, 5_000 + waitMs - 1)).toBe(1);
});

test("amounts that wait for room keep to the rate on average", () => {
  const steps = fc.array(
    fc.record({ gap: fc.integer({ min: 0, max: 50 }), amount: fc.integer({ min: 1, max: 200 }) }),
    { minLength: 200, maxLength: 400 },
  );
  fc.assert(
    fc.property(RATES, steps, (rate, all) => {
      let [nowMs, dueMs, sum] = [1_000_000, 0, 0];
      for (const { gap, amount } of all) {
        nowMs += gap;
        if (waitOf(dueMs, nowMs) > 0) continue;
        dueMs = use(rate, dueMs, nowMs, amount);
        sum += amount;
      }
      // The bound is the rate over the elapsed time and the burst, plus one amount (at most 200) that was used while
      // there was little room.
      expect(sum).toBeLessThanOrEqual(((nowMs - 1_000_000 + 1_000) * rate) / 1_000 + 200 + 1e-6);
    }),
  );
});
