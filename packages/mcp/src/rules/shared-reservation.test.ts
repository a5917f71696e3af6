import { expect, test } from "vitest";
import { callsToReserve, isNearlyUsedUp, SHARED_MS } from "./shared-reservation.ts";

const usedUp = (calls: number) => ({
  ...{ calls, used: calls, isUsedUp: true, ageMs: 10, remainingMicrocents: 1_000_000 },
});

test.each([
  ["the first call", undefined, 1],
  ["the second call in a row", usedUp(1), 2],
  ["further calls", usedUp(4), 8],
  ["calls beyond the maximum", usedUp(16), 16],
  ["fewer calls than before", { ...usedUp(8), used: 3, isUsedUp: false }, 3],
  ["no calls", { ...usedUp(8), used: 0, isUsedUp: false }, 1],
  ["a call soon after the end of the previous one", { ...usedUp(8), ageMs: 2 * SHARED_MS }, 16],
  ["a call after a pause", { ...usedUp(8), ageMs: 2 * SHARED_MS + 1 }, 1],
  ["a budget of 16 times 4 calls", { ...usedUp(8), remainingMicrocents: 16 * 4 * 100 }, 4],
  ["a budget of almost 16 times 4 calls", { ...usedUp(8), remainingMicrocents: 16 * 4 * 100 - 1 }, 3],
  ["the end of the budget", { ...usedUp(8), remainingMicrocents: 0 }, 1],
])("after %s: calls to reserve", (_, previous, calls) => {
  expect(callsToReserve(previous, 100, 16)).toBe(calls);
});

test("a maximum of one call gives each call a reservation of its own", () => {
  expect(callsToReserve(usedUp(1), 100, 1)).toBe(1);
});

test.each([
  [16, 400, false],
  [16, 399, true],
  [2, 100, false],
  [2, 0, true],
])("of a reservation for %i calls %i microcents are free: nearly used up is %s", (calls, free, expected) => {
  expect(isNearlyUsedUp(free, calls, 100)).toBe(expected);
});
