import { DeputeError, ErrorReason } from "@depute/core";
import type { DenialReason } from "@depute/dct";

/** Milliseconds that a reservation has to be settled in unless its maker says otherwise. */
export const DEFAULT_RESERVATION_MS = 300_000;
/** Milliseconds after a token's end that its spend is still known, so that late outcomes can be settled. */
export const SPEND_RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
/** Reservations of one token that may be open at once. */
export const MAX_OPEN_RESERVATIONS = 10_000;

/** What is stored of a reservation: `held` until somebody settles it. */
export interface Held {
  readonly id: string;
  readonly state: "held" | "committed" | "released";
  /** Microcents. */
  readonly amount: number;
  readonly charged: number;
  /** Milliseconds since 1970. */
  readonly expireTime: number;
}

/** What somebody says of the outcome: what it did cost, undefined for not known; or that it cost nothing. */
export type Outcome = { commit: number | undefined } | "release";

/** Where a reservation stands. Nothing happens when its time is over: it is then read as charged. */
export function standing(
  reservation: Held,
  now: number,
): { state: Held["state"] | "expired"; charged: number } {
  const { state, amount, charged, expireTime } = reservation;
  if (state === "held" && now >= expireTime) return { state: "expired", charged: amount };
  return { state, charged };
}

/**
 * What a reservation becomes by an outcome; undefined when it is that already. One that is over can still be settled:
 * until then it counts in full, since nobody knows what the call did cost.
 *
 * @throws DeputeError RESERVATION_SETTLED when it was settled otherwise, BUDGET_EXCEEDED for more than was reserved
 */
export function settled(
  reservation: Held,
  outcome: Outcome,
): { state: "committed" | "released"; charged: number } | undefined {
  const { id, state, amount, charged } = reservation;
  const next =
    outcome === "release"
      ? ({ state: "released", charged: 0 } as const)
      : ({ state: "committed", charged: outcome.commit ?? amount } as const);
  if (next.charged > amount) throw exceeded(next.charged, amount, "more than was reserved");
  if (state === "held") return next;
  if (state === next.state && charged === next.charged) return undefined;
  throw new DeputeError(ErrorReason.RESERVATION_SETTLED, `the reservation was ${state} before`, {
    metadata: { reservation: id, state, charged: String(charged) },
  });
}

/** A block of a chain with what counts under it: charged and held. */
export interface Level {
  readonly maxBudgetMicrocents: number;
  readonly counted: number;
}

/** Why nothing more may be spent, as DelegateOS 10.1 step 6 asks at every block; undefined while something may. */
export function spentUp(levels: readonly Level[]): DenialReason | undefined {
  const level = levels.findIndex(({ counted, maxBudgetMicrocents }) => counted >= maxBudgetMicrocents);
  if (level < 0) return undefined;
  const detail = level === 0 ? "authority" : `attenuations[${level - 1}]`;
  return { type: "budget_exceeded", detail, level };
}

/** What may still be spent: the least that is left at any block. */
export function remaining(levels: readonly Level[]): number {
  return levels.reduce(
    (least, { counted, maxBudgetMicrocents }) => Math.min(least, Math.max(0, maxBudgetMicrocents - counted)),
    Number.MAX_SAFE_INTEGER,
  );
}

/** The refusal of an amount that a limit does not allow. */
export function exceeded(needed: number, allowed: number, message: string, level?: number): DeputeError {
  return new DeputeError(ErrorReason.BUDGET_EXCEEDED, message, {
    metadata: {
      needed: String(needed),
      allowed: String(allowed),
      unit: "microcents",
      ...(level !== undefined && { level: String(level) }),
    },
  });
}
