/** Length of a rate's burst in milliseconds: a caller may use the quota of this period at once. */
const BURST_MS = 1_000;

/**
 * The result of counting one call against a rate. With `dueMs` the call is allowed; `dueMs` is the time in milliseconds
 * at which the whole quota is free again. With `retryAfterMs` the call is refused for so many milliseconds.
 */
export type Taken = { readonly dueMs: number } | { readonly retryAfterMs: number };

/**
 * Counts one call against a rate (generic cell rate algorithm, ITU-T I.371).
 *
 * @param perSecond the rate, above 0
 * @param dueMs the state of the rate: the time at which the whole quota is free again, by the clock of `nowMs`; 0
 * before the first call
 */
export function take(perSecond: number, dueMs: number, nowMs: number): Taken {
  const next = Math.max(dueMs, nowMs) + 1000 / perSecond;
  // The comparison has a tolerance, because the sum of many intervals may exceed the burst by a rounding error.
  const overMs = next - nowMs - BURST_MS;
  return overMs > 1e-6 ? { retryAfterMs: Math.ceil(overMs) } : { dueMs: next };
}

/**
 * Counts an amount against a rate after the amount was used. If the amount exceeds the burst, the rate has no room for
 * a longer time.
 *
 * @param perSecond the rate, above 0
 * @param dueMs the state of the rate: the time at which the whole quota is free again, by the clock of `nowMs`; 0
 * before the first use
 * @returns the next state
 */
export function use(perSecond: number, dueMs: number, nowMs: number, amount: number): number {
  return Math.max(dueMs, nowMs) + (amount * 1000) / perSecond;
}

/** Returns the milliseconds until a rate has room for a further amount; 0 if the rate has room now. */
export function waitOf(dueMs: number, nowMs: number): number {
  return Math.max(0, Math.floor(dueMs - nowMs - BURST_MS) + 1);
}
