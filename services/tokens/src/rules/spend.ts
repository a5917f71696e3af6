import { DeputeError, ErrorReason } from "@depute/core";
import type { DenialReason } from "@depute/dct";

/** Default time within which a caller must settle a reservation, in milliseconds. */
export const DEFAULT_RESERVATION_MS = 300_000;
/**
 * Milliseconds for which the store keeps spend after a token's expiry, so that late calls can still settle
 * reservations.
 */
export const SPEND_RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
/** Maximum number of open reservations of one token. */
export const MAX_OPEN_RESERVATIONS = 10_000;

/** A stored reservation. Its state is `held` until it is settled. */
export interface ReservationRecord {
  readonly id: string;
  readonly state: "held" | "committed" | "released";
  /** The reserved microcents. */
  readonly amount: number;
  readonly charged: number;
  /** The time at which the reservation expires, in epoch milliseconds. */
  readonly expireTime: number;
}

/**
 * The outcome that a caller reports: `commit` with the actual cost in microcents, or undefined for an unknown cost;
 * `release` if there was no cost.
 */
export type Outcome = { commit: number | undefined } | "release";

/**
 * Returns the state of a reservation. The record does not change at the reservation's expiry: from then on, this
 * function returns the whole amount as charged.
 */
export function reservationState(
  reservation: ReservationRecord,
  now: number,
): { state: ReservationRecord["state"] | "expired"; charged: number } {
  const { state, amount, charged, expireTime } = reservation;
  if (state === "held" && now >= expireTime) return { state: "expired", charged: amount };
  return { state, charged };
}

/**
 * Returns the next state of a reservation for an outcome; undefined if the outcome is already recorded. A caller can
 * still settle an expired reservation. An expired reservation that is not settled counts in full, because its actual
 * cost is unknown.
 *
 * @throws DeputeError RESERVATION_SETTLED if a different outcome is recorded, BUDGET_EXCEEDED if the cost is more than
 * the reserved amount
 */
export function nextReservation(
  reservation: ReservationRecord,
  outcome: Outcome,
): { state: "committed" | "released"; charged: number } | undefined {
  const { id, state, amount, charged } = reservation;
  const next =
    outcome === "release"
      ? ({ state: "released", charged: 0 } as const)
      : ({ state: "committed", charged: outcome.commit ?? amount } as const);
  if (next.charged > amount) throw budgetExceeded(next.charged, amount, "more than was reserved");
  if (state === "held") return next;
  if (state === next.state && charged === next.charged) return undefined;
  throw new DeputeError(ErrorReason.RESERVATION_SETTLED, `the reservation is already ${state}`, {
    metadata: { reservation: id, state, charged: String(charged) },
  });
}

/**
 * The budget of one block of a chain, and the amount that counts against it: charged plus reserved. Both are
 * microcents.
 */
export interface Level {
  readonly maxBudgetMicrocents: number;
  readonly counted: number;
}

/** Returns the denial if a block's budget is exhausted; undefined otherwise. (DelegateOS 10.1 step 6) */
export function budgetDenial(levels: readonly Level[]): DenialReason | undefined {
  const level = levels.findIndex(({ counted, maxBudgetMicrocents }) => counted >= maxBudgetMicrocents);
  if (level < 0) return undefined;
  const detail = level === 0 ? "authority" : `attenuations[${level - 1}]`;
  return { type: "budget_exceeded", detail, level };
}

/** Returns the remaining budget in microcents: the smallest of all blocks. */
export function remaining(levels: readonly Level[]): number {
  return levels.reduce(
    (least, { counted, maxBudgetMicrocents }) => Math.min(least, Math.max(0, maxBudgetMicrocents - counted)),
    Number.MAX_SAFE_INTEGER,
  );
}

/** Builds the error for an amount beyond a limit. */
export function budgetExceeded(
  needed: number,
  allowed: number,
  message: string,
  level?: number,
): DeputeError {
  return new DeputeError(ErrorReason.BUDGET_EXCEEDED, message, {
    metadata: {
      needed: String(needed),
      allowed: String(allowed),
      unit: "microcents",
      ...(level !== undefined && { level: String(level) }),
    },
  });
}
