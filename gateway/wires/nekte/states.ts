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

/** The NEKTE state for each status. If a task waits for a party other than its worker, its state is `running`. */
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
  if (state === undefined) throw new Error(`${status} is not a task status`);
  return state;
}

/**
 * Returns the state of a task that has returned to the queue. NEKTE has no transition back to `pending` or `accepted`,
 * so the task remains `running` until its next state.
 */
export function stateOnceBegun(status: TaskStatus): NekteState {
  const state = stateOf(status);
  return state === "pending" || state === "accepted" ? "running" : state;
}

/** Returns the current NEKTE state of a task. The number of events shows whether the task has returned to the queue. */
export function stateOfTask({ status, lastSequence, estimate }: Task): NekteState {
  return stateAt(status, lastSequence, estimate !== undefined);
}

/** Returns the state of a task before its latest event. */
export function stateBefore(previous: TaskStatus, { lastSequence, estimate }: Task): NekteState {
  return stateAt(previous, lastSequence - 1n, estimate !== undefined);
}

function stateAt(status: TaskStatus, events: bigint, hasEstimate: boolean): NekteState {
  // The log begins with `created`, then `accepted`, and sometimes an estimate. If it contains more events, the task has
  // returned to the queue.
  const before = status === TaskStatus.PENDING ? 1n : hasEstimate ? 3n : 2n;
  return events > before ? stateOnceBegun(status) : stateOf(status);
}
