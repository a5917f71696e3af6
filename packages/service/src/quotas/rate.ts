/** Milliseconds of a rate's burst: a caller may use the quota of this time at once. */
const BURST_MS = 1_000;

/**
 * The result of counting one call against a rate: the next state, or the milliseconds until the rate allows the call.
 */
export type Taken = { readonly dueMs: number } | { readonly retryAfterMs: number };

/**
 * Counts one call against a rate (generic cell rate algorithm, ITU-T I.371).
 *
 * @param perSecond the rate, above 0
 * @param dueMs the state: the time at which the quota is full again; 0 for a full quota
 */
export function take(perSecond: number, dueMs: number, nowMs: number): Taken {
  const next = Math.max(dueMs, nowMs) + 1000 / perSecond;
  // Without the tolerance, the sum of many intervals could exceed the burst by a rounding error.
  const overMs = next - nowMs - BURST_MS;
  return overMs > 1e-6 ? { retryAfterMs: Math.ceil(overMs) } : { dueMs: next };
}

/**
 * Adds an amount to a rate after its use. The amount may exceed the burst; the rate then has no room for a longer time.
 *
 * @param perSecond the rate, above 0
 * @param dueMs the state: the time at which the quota is full again; 0 for a full quota
 * @returns the next state
 */
export function use(perSecond: number, dueMs: number, nowMs: number, amount: number): number {
  return Math.max(dueMs, nowMs) + (amount * 1000) / perSecond;
}

/** Returns the milliseconds until a rate has room for any amount; 0 if it has room now. */
export function waitOf(dueMs: number, nowMs: number): number {
  return Math.max(0, Math.floor(dueMs - nowMs - BURST_MS) + 1);
}
