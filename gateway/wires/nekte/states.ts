import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";

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
