/** Limits of one principal's calls, of one tool or of a whole server. An absent member means no limit. */
export interface CallLimits {
  /** Maximum average number of calls per minute. A principal may make all calls of a minute at once. */
  readonly callsPerMinute?: number;
  /** Maximum number of calls at the same time. */
  readonly concurrentCalls?: number;
  /** Maximum size of a call's arguments as JSON, in bytes of UTF-8. */
  readonly argumentBytes?: number;
  /** Maximum average number of requests per minute on tasks that calls of the tool began. Only for a tool. */
  readonly taskRequestsPerMinute?: number;
  /** Maximum average cost per hour, in microcents. A principal may spend the amount of an hour at once. */
  readonly microcentsPerHour?: number;
}

/** Converts a tool's limits to the limits for requests on the tool's tasks. */
export function taskLimits({ taskRequestsPerMinute, argumentBytes }: CallLimits): CallLimits {
  return {
    ...(taskRequestsPerMinute !== undefined && { callsPerMinute: taskRequestsPerMinute }),
    ...(argumentBytes !== undefined && { argumentBytes }),
  };
}

/** An allowance that refills at a constant rate, up to its capacity. */
export interface Allowance {
  readonly remaining: number;
  /** The time at which `remaining` was computed, in milliseconds since the Unix epoch. */
  readonly atMs: number;
}

/** The rate at which an allowance refills: an empty allowance is full after `periodMs`. */
export interface AllowanceRate {
  readonly capacity: number;
  readonly periodMs: number;
}

export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;

/**
 * The result of a withdrawal. `retryAfterMs` is absent if the amount exceeds the capacity, because then no wait helps.
 */
export type Withdrawal =
  | { readonly ok: true; readonly allowance: Allowance }
  | { readonly ok: false; readonly retryAfterMs?: number };

/**
 * Takes an amount from an allowance.
 *
 * @param allowance undefined means a full allowance
 */
export function withdraw(
  rate: AllowanceRate,
  allowance: Allowance | undefined,
  amount: number,
  nowMs: number,
): Withdrawal {
  const remaining = remainingAt(rate, allowance, nowMs);
  if (remaining >= amount) return { ok: true, allowance: { remaining: remaining - amount, atMs: nowMs } };
  if (amount > rate.capacity) return { ok: false };
  return { ok: false, retryAfterMs: Math.ceil(((amount - remaining) * rate.periodMs) / rate.capacity) };
}

/** Returns an amount to an allowance, up to its capacity. */
export function deposit(
  rate: AllowanceRate,
  allowance: Allowance | undefined,
  amount: number,
  nowMs: number,
): Allowance {
  const remaining = Math.min(rate.capacity, remainingAt(rate, allowance, nowMs) + amount);
  return { remaining, atMs: nowMs };
}

function remainingAt(
  { capacity, periodMs }: AllowanceRate,
  allowance: Allowance | undefined,
  nowMs: number,
): number {
  if (allowance === undefined) return capacity;
  // If the clock was set back, nothing is added, so that the allowance does not shrink.
  const earned = (Math.max(0, nowMs - allowance.atMs) * capacity) / periodMs;
  return Math.min(capacity, allowance.remaining + earned);
}
