import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

/** NEKTE's seven states (NEKTE, Task Lifecycle State Machine). */
export type NekteState =
  | "pending"
  | "accepted"
  | "running"
  | "suspended"
  | "completed"
  | "cancelled"
  | "failed";

/** Every status as one of NEKTE's states. What waits for somebody else than the worker still runs to a NEKTE client. */
export const STATES: Readonly<Record<keyof typeof TaskStatus, NekteState>> = {
  UNSPECIFIED: "pending",
  PENDING: "pending",
  ACCEPTED: "accepted",
  RUNNING: "running",
  SUSPENDED: "suspended",
  INPUT_REQUIRED: "running",
  IN_REVIEW: "running",
  COMPLETED: "completed",
  REJECTED: "failed",
  FAILED: "failed",
  CANCELLED: "cancelled",
  EXPIRED: "failed",
  REVOKED: "failed",
};

const byNumber = new Map<number, NekteState>(
  Object.entries(TaskStatus).map(([name, number]) => [number, STATES[name as keyof typeof TaskStatus]]),
);

export function stateOf(status: TaskStatus): NekteState {
  const state = byNumber.get(status);
  if (state === undefined) throw new Error(`no such task status: ${status}`);
  return state;
}

/**
 * A task's state once it has waited for a worker again: resumed, requeued or sent back. NEKTE's table has no way back to
 * pending or accepted, so it is running until it stands elsewhere.
 */
export function stateOnceBegun(status: TaskStatus): NekteState {
  const state = stateOf(status);
  return state === "pending" || state === "accepted" ? "running" : state;
}

/** The state of a task as it stands, from how many events its log has. */
export function stateOfTask({ status, lastSequence, estimate }: Task): NekteState {
  return stateAt(status, lastSequence, estimate !== undefined);
}

/** The state of a task before its newest event. */
export function stateBefore(previous: TaskStatus, { lastSequence, estimate }: Task): NekteState {
  return stateAt(previous, lastSequence - 1n, estimate !== undefined);
}

function stateAt(status: TaskStatus, events: bigint, hasEstimate: boolean): NekteState {
  // The log begins with `created`, then `accepted`; an estimate may follow. More than that has happened to who waits again.
  const before = status === TaskStatus.PENDING ? 1n : hasEstimate ? 3n : 2n;
  return events > before ? stateOnceBegun(status) : stateOf(status);
}
