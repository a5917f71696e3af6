import { SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";

const { AUTHORIZED, HELD, CAPTURED, RELEASED, VOIDED, REFUNDED } = SettlementState;

/** The next state of a payment when it is paid or not paid. A state without an entry is final. */
export const NEXT_STATES: Readonly<
  Partial<Record<SettlementState, { readonly paid: SettlementState; readonly unpaid: SettlementState }>>
> = {
  [AUTHORIZED]: { paid: CAPTURED, unpaid: VOIDED },
  [HELD]: { paid: RELEASED, unpaid: REFUNDED },
};

/** Returns the state of a payment at the acceptance of the request. */
export function firstState(escrowRequired: boolean): SettlementState {
  return escrowRequired ? HELD : AUTHORIZED;
}

/** Whether a payment is settled: its state has no next state. */
export function isSettled(state: SettlementState): boolean {
  return NEXT_STATES[state] === undefined;
}

/**
 * Returns the state of a payment after its settlement.
 *
 * @throws Error if the payment is already settled, so that no payment is settled twice
 */
export function settle(state: SettlementState, isPaid: boolean): SettlementState {
  const next = NEXT_STATES[state];
  if (next === undefined) throw new Error(`a payment in state ${state} is settled`);
  return isPaid ? next.paid : next.unpaid;
}
