import { SettlementState } from "@depute/contracts/depute/tasks/v1/execution_service_pb";

const { AUTHORIZED, HELD, CAPTURED, RELEASED, VOIDED, REFUNDED } = SettlementState;

/** What a payment's state may become; what is not here is final. */
export const NEXT_STATES: Readonly<
  Partial<Record<SettlementState, { readonly paid: SettlementState; readonly unpaid: SettlementState }>>
> = {
  [AUTHORIZED]: { paid: CAPTURED, unpaid: VOIDED },
  [HELD]: { paid: RELEASED, unpaid: REFUNDED },
};

/** The state of a payment at the acceptance of its request. */
export function firstState(escrowRequired: boolean): SettlementState {
  return escrowRequired ? HELD : AUTHORIZED;
}

/** Whether a payment is settled one way or the other. */
export function isSettled(state: SettlementState): boolean {
  return NEXT_STATES[state] === undefined;
}

/**
 * The state of a payment that is made, or is not.
 *
 * @throws Error for one that is settled: nothing is paid twice, or taken back
 */
export function settle(state: SettlementState, isPaid: boolean): SettlementState {
  const next = NEXT_STATES[state];
  if (next === undefined) throw new Error(`a payment in state ${state} is settled`);
  return isPaid ? next.paid : next.unpaid;
}
