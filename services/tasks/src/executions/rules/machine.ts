import {
  ExecutionStatus,
  ExecutionStatusSchema,
} from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";

const { ACCEPTED, REJECTED, IN_PROGRESS, COMPLETED, FAILED, CANCELLED, EXPIRED } = ExecutionStatus;

/**
 * The statuses that an execution's first receipt may have. Agenta's manifest lists transitions, not first statuses.
 * Depute's choice: the first receipt accepts or rejects the request.
 */
export const FIRST_STATUSES: readonly ExecutionStatus[] = [ACCEPTED, REJECTED];

/** Every allowed transition. (Agenta protocol manifest, `state_transitions.allowed`) */
export const TRANSITIONS: readonly (readonly [from: ExecutionStatus, to: ExecutionStatus])[] = [
  [ACCEPTED, IN_PROGRESS],
  [ACCEPTED, COMPLETED],
  [ACCEPTED, FAILED],
  [ACCEPTED, CANCELLED],
  [ACCEPTED, EXPIRED],
  [IN_PROGRESS, COMPLETED],
  [IN_PROGRESS, FAILED],
  [IN_PROGRESS, CANCELLED],
  [IN_PROGRESS, EXPIRED],
];

/** The statuses without a further transition. (Agenta protocol manifest, `state_transitions.terminal`) */
export const TERMINAL_STATUSES: readonly ExecutionStatus[] = [
  REJECTED,
  COMPLETED,
  FAILED,
  CANCELLED,
  EXPIRED,
];

/** The statuses in which an execution uses the seller's capacity. */
export const OPEN_STATUSES: readonly ExecutionStatus[] = [ACCEPTED, IN_PROGRESS];

/**
 * Whether a receipt with status `to` may follow a receipt with status `from`. `from` is undefined before the first
 * receipt.
 */
export function canFollow(from: ExecutionStatus | undefined, to: ExecutionStatus): boolean {
  if (from === undefined) return FIRST_STATUSES.includes(to);
  return TRANSITIONS.some(([before, after]) => before === from && after === to);
}

export function isTerminal(status: ExecutionStatus): boolean {
  return TERMINAL_STATUSES.includes(status);
}

/** Returns a status in the protocol's spelling, such as `in_progress`. */
export function statusWord(status: ExecutionStatus): string {
  return (ExecutionStatusSchema.value[status]?.localName ?? "").toLowerCase();
}
