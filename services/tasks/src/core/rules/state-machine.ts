import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/** The actors that can cause transitions. */
export type Actor =
  /** The principal that created the task. */
  | "delegator"
  /** The delegate, under a lease. */
  | "worker"
  /** The delegate, by a signed attestation that the verifier checked. The attestation needs no lease. */
  | "attestation"
  /** The reviewer of held results. */
  | "overseer"
  /** A time limit of the task. */
  | "clock"
  /** The token under which the work runs, when it is revoked or expires. */
  | "authority"
  /** The end of the task's parent task. */
  | "parent";

export interface Transition {
  readonly from: TaskStatus;
  readonly to: TaskStatus;
  readonly by: readonly Actor[];
}

const { PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED, IN_REVIEW } = TaskStatus;
const { COMPLETED, REJECTED, FAILED, CANCELLED, EXPIRED, REVOKED } = TaskStatus;

/** The statuses in which a task can still change. */
export const OPEN_STATUSES = [PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED, IN_REVIEW] as const;

/** The statuses in which a task has ended. */
export const TERMINAL_STATUSES = [COMPLETED, REJECTED, FAILED, CANCELLED, EXPIRED, REVOKED] as const;

/** The statuses in which a worker holds the task under a lease. */
export const HELD_STATUSES = [ACCEPTED, RUNNING, INPUT_REQUIRED] as const;

/**
 * The open statuses in which an attestation may end a task. IN_REVIEW is missing, because the overseer decides on the
 * held result.
 */
export const ATTESTABLE_STATUSES = [PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED] as const;

/**
 * The actors that may cancel a held task. The worker and the clock may cancel only after the delegator has
 * requested the cancellation.
 */
const CANCEL_HELD: readonly Actor[] = ["delegator", "parent", "worker", "clock"];

const FAIL_ATTESTABLE: readonly Actor[] = ["worker", "attestation", "overseer", "clock"];
const FAIL_HELD_RESULT: readonly Actor[] = ["worker", "overseer", "clock"];

/** Every allowed transition. Creation is not a transition: a task begins as PENDING. */
export const TRANSITIONS: readonly Transition[] = [
  { from: PENDING, to: ACCEPTED, by: ["worker"] },
  { from: PENDING, to: REJECTED, by: ["worker"] },
  { from: ACCEPTED, to: RUNNING, by: ["worker"] },
  { from: ACCEPTED, to: REJECTED, by: ["worker"] },
  { from: ACCEPTED, to: PENDING, by: ["worker", "clock"] },
  { from: RUNNING, to: PENDING, by: ["worker", "clock"] },
  { from: RUNNING, to: SUSPENDED, by: ["worker", "clock"] },
  // A suspended task has no lease. So a resumed task becomes pending first, because it needs a worker.
  { from: SUSPENDED, to: PENDING, by: ["delegator"] },
  { from: RUNNING, to: INPUT_REQUIRED, by: ["worker"] },
  { from: INPUT_REQUIRED, to: RUNNING, by: ["delegator"] },
  { from: INPUT_REQUIRED, to: PENDING, by: ["worker", "clock"] },
  { from: INPUT_REQUIRED, to: SUSPENDED, by: ["worker", "clock"] },
  ...ATTESTABLE_STATUSES.flatMap((from): Transition[] => [
    { from, to: IN_REVIEW, by: mayDeliver(from) ? ["worker", "attestation"] : ["attestation"] },
    { from, to: COMPLETED, by: mayDeliver(from) ? ["worker", "attestation"] : ["attestation"] },
  ]),
  { from: IN_REVIEW, to: PENDING, by: ["overseer"] },
  { from: IN_REVIEW, to: COMPLETED, by: ["overseer"] },
  ...OPEN_STATUSES.flatMap((from): Transition[] => [
    { from, to: FAILED, by: isAttestable(from) ? FAIL_ATTESTABLE : FAIL_HELD_RESULT },
    { from, to: CANCELLED, by: isHeld(from) ? CANCEL_HELD : ["delegator", "parent"] },
    { from, to: EXPIRED, by: ["clock"] },
    { from, to: REVOKED, by: ["authority"] },
  ]),
];

const actors = new Map(TRANSITIONS.map(({ from, to, by }) => [key(from, to), by]));

/** Whether the table contains the transition. With `by`, also whether that actor may cause the transition. */
export function canTransition(from: TaskStatus, to: TaskStatus, by?: Actor): boolean {
  const allowed = actors.get(key(from, to));
  return allowed !== undefined && (by === undefined || allowed.includes(by));
}

/** Whether a task in this status has ended. */
export function isTerminal(status: TaskStatus): boolean {
  return (TERMINAL_STATUSES as readonly TaskStatus[]).includes(status);
}

/** Whether a worker holds a task in this status. */
export function isHeld(status: TaskStatus): boolean {
  return (HELD_STATUSES as readonly TaskStatus[]).includes(status);
}

/** Whether an attestation may end a task in this status. */
export function isAttestable(status: TaskStatus): boolean {
  return (ATTESTABLE_STATUSES as readonly TaskStatus[]).includes(status);
}

/**
 * Whether a worker may deliver a result from this status. For ACCEPTED, {@link deliversUnstarted} must allow the
 * delivery.
 */
function mayDeliver(status: TaskStatus): boolean {
  return status === RUNNING || status === ACCEPTED;
}

/**
 * Whether a worker may complete this task without StartAssignment. An execution may go from accepted to completed.
 * (Agenta protocol manifest, `state_transitions.allowed`)
 */
export function deliversUnstarted({ executionRequestId }: Pick<Task, "executionRequestId">): boolean {
  return executionRequestId !== "";
}

/** Returns the name of a status for messages and error metadata, e.g. `in_review`. */
export function statusName(status: TaskStatus): string {
  return NAMES.get(status) ?? "unspecified";
}

const NAMES = new Map<TaskStatus, string>(
  Object.entries(TaskStatus).map(([name, value]) => [value, name.toLowerCase()]),
);

/** Returns the error for a transition that is not in the table. */
export function stateConflict(taskId: string, from: TaskStatus, to: TaskStatus): DeputeError {
  const names = { from: statusName(from), to: statusName(to) };
  return new DeputeError(
    ErrorReason.TASK_STATE_CONFLICT,
    `a task that is ${names.from} cannot become ${names.to}: ${nextStep(from)}`,
    { metadata: { task: taskId, ...names } },
  );
}

/** Returns, for error messages, who must do what so that a task leaves this status. */
function nextStep(from: TaskStatus): string {
  switch (from) {
    case PENDING:
      return "a worker must take it first, by TakeAssignments or WatchAssignments";
    case ACCEPTED:
      return "its worker must start it first, by StartAssignment";
    case RUNNING:
      return "its worker must end it, by CompleteAssignment or FailAssignment";
    case SUSPENDED:
      return "its delegator must resume it first, by ResumeTask";
    case INPUT_REQUIRED:
      return "its delegator must answer first, by ProvideInput";
    case IN_REVIEW:
      return "its overseer must decide first, by DecideReview of the verifier";
    default:
      return "the task has ended; create a new task instead";
  }
}

function key(from: TaskStatus, to: TaskStatus): number {
  return from * 100 + to;
}
