import type { Authoriser } from "./authoriser.ts";
import { type CallOutcome, settlementOf } from "./rules/cost.ts";
import type { BudgetState } from "./rules/refusal.ts";
import type { CostRule } from "./rules/tool-map.ts";

/** Money that was set aside for one call. */
export interface Held {
  readonly reservationId: string;
  readonly cost: CostRule;
}

/** Told of what could not be settled: the reservation then counts as spent when its time is over. */
export type SettleFault = (reservationId: string, thrown: unknown) => void;

/**
 * Settles what was set aside for a call.
 *
 * @returns where the money is; `held` when that could not be told to the tokens service
 */
export async function settle(
  authoriser: Authoriser,
  held: Held | undefined,
  outcome: CallOutcome,
  onFault: SettleFault,
): Promise<BudgetState> {
  if (held === undefined) return NOTHING;
  const { reservationId, cost } = held;
  const settlement = settlementOf(cost, outcome);
  const reservedMicrocents = cost.most;
  try {
    if (settlement.kind === "release") {
      await authoriser.release(reservationId);
      return { state: "released", reservedMicrocents, chargedMicrocents: 0 };
    }
    const chargedMicrocents = await authoriser.commit(reservationId, settlement.amount);
    return { state: "charged", reservedMicrocents, chargedMicrocents };
  } catch (thrown) {
    onFault(reservationId, thrown);
    return { state: "held", reservedMicrocents, chargedMicrocents: 0 };
  }
}

export const NOTHING: BudgetState = { state: "none", reservedMicrocents: 0, chargedMicrocents: 0 };
