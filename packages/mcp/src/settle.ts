import type { Spender } from "./authoriser.ts";
import { type CallOutcome, settlementOf } from "./rules/cost.ts";
import type { BudgetState } from "./rules/refusal.ts";
import type { CostRule } from "./rules/tool-map.ts";

/** The reservation of one call at the tokens service, and the rule for the call's cost. */
export interface CallReservation {
  readonly reservationId: string;
  readonly cost: CostRule;
  /** Receives the part of the reservation, in microcents, that will certainly not be charged. */
  onUncharged(microcents: number): void;
}

/**
 * Called with the id of a reservation that could not be settled. Such a reservation is charged in full when it expires.
 */
export type SettleFault = (reservationId: string, thrown: unknown) => void;

/**
 * Settles the reservation of a call.
 *
 * @returns the state of the reserved amount: `held` if the call to the tokens service failed, `none` without a
 * reservation
 */
export async function settle(
  spender: Spender,
  held: CallReservation | undefined,
  outcome: CallOutcome,
  onFault: SettleFault,
): Promise<BudgetState> {
  if (held === undefined) return NOTHING;
  const { reservationId, cost, onUncharged } = held;
  const settlement = settlementOf(cost, outcome);
  const reservedMicrocents = cost.most;
  try {
    if (settlement.kind === "release") {
      await spender.release(reservationId);
      onUncharged(reservedMicrocents);
      return { state: "released", reservedMicrocents, chargedMicrocents: 0 };
    }
    const chargedMicrocents = await spender.commit(reservationId, settlement.amount);
    onUncharged(reservedMicrocents - chargedMicrocents);
    return { state: "charged", reservedMicrocents, chargedMicrocents };
  } catch (thrown) {
    onFault(reservationId, thrown);
    return { state: "held", reservedMicrocents, chargedMicrocents: 0 };
  }
}

export const NOTHING: BudgetState = { state: "none", reservedMicrocents: 0, chargedMicrocents: 0 };
