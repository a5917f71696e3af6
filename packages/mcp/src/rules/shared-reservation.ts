/**
 * Milliseconds for which calls may use one reservation. Then the reservation is settled when its calls have ended.
 */
export const SHARED_MS = 1_000;

/** A reservation for several calls is at most this part of the token's remaining budget. */
const PART_OF_REMAINING = 1 / 16;
/** When less than this part of a reservation is free, the next reservation is made. */
const PART_LEFT = 1 / 4;

/** The previous reservation under a token. */
export interface PreviousReservation {
  /** The number of calls for which the reservation was made. */
  readonly calls: number;
  /** The number of calls that used the reservation. */
  readonly used: number;
  /** Whether the reservation did not suffice for all calls of its time. */
  readonly isUsedUp: boolean;
  /** Milliseconds since the reservation was made. */
  readonly ageMs: number;
  /** The remaining budget of the token after the reservation, in microcents. */
  readonly remainingMicrocents: number;
}

/**
 * Returns the number of calls for which the next reservation is made. The number doubles while calls follow each other
 * quickly. A reservation for one call is made for the first call, after a pause, and near the end of the budget.
 *
 * @param cost the maximum cost of one call in microcents, at least 1
 * @param most the maximum number of calls, at least 1
 */
export function callsToReserve(
  previous: PreviousReservation | undefined,
  cost: number,
  most: number,
): number {
  if (previous === undefined || previous.ageMs > 2 * SHARED_MS) return 1;
  const { calls, used, isUsedUp, remainingMicrocents } = previous;
  const wanted = isUsedUp ? 2 * calls : used;
  const affordable = Math.floor((remainingMicrocents * PART_OF_REMAINING) / cost);
  return Math.max(1, Math.min(wanted, affordable, most));
}

/**
 * Whether so little of a reservation is free that the next one should be made, before a call has to wait for it.
 *
 * @param free the amount in microcents that no call has taken
 * @param calls the number of calls for which the reservation was made
 * @param cost the maximum cost of one call in microcents
 */
export function isNearlyUsedUp(free: number, calls: number, cost: number): boolean {
  return free < calls * cost * PART_LEFT;
}
