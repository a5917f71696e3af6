import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason } from "@depute/core";

/** Who can bring a transition about. */
export type Actor =
  /** Who created the task. */
  | "delegator"
  /** The delegate, under a lease. */
  | "worker"
  /** The delegate, by a signed attestation that the verifier checked; it needs no lease. */
  | "attestation"
  /** Who decides on results that are held for review. */
  | "overseer"
  /** The time limits. */
  | "clock"
  /** The token that the work runs under. */
  | "authority"
  /** The task that it is a part of. */
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

/** The statuses in which an attestation may end a task: a result that is held already is for the overseer to decide. */
export const ATTESTABLE_STATUSES = [PENDING, ACCEPTED, RUNNING, SUSPENDED, INPUT_REQUIRED] as const;

/** A worker and the clock end only what the delegator has called off. */
const CANCEL_HELD: readonly Actor[] = ["delegator", "parent", "worker", "clock"];

const FAIL_ATTESTABLE: readonly Actor[] = ["worker", "attestation", "overseer", "clock"];
const FAIL_HELD_RESULT: readonly Actor[] = ["worker", "overseer", "clock"];

/** Every transition that there is. Creation is not one: a task begins as PENDING. */
export const TRANSITIONS: readonly Transition[] = [
  { from: PENDING, to: ACCEPTED, by: ["worker"] },
  { from: PENDING, to: REJECTED, by: ["worker"] },
  { from: ACCEPTED, to: RUNNING, by: ["worker"] },
  { from: ACCEPTED, to: REJECTED, by: ["worker"] },
  { from: ACCEPTED, to: PENDING, by: ["worker", "clock"] },
  { from: RUNNING, to: PENDING, by: ["worker", "clock"] },
  { from: RUNNING, to: SUSPENDED, by: ["worker", "clock"] },
  // Nobody holds a suspended task, nor one whose result is looked at: to go on, it needs a worker first.
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

/** Whether there is such a transition; with `by`, whether that actor may bring it about. */
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

/** Whether a worker may deliver a result from this status; from ACCEPTED only where {@link deliversUnstarted} allows it. */
function mayDeliver(status: TaskStatus): boolean {
  return status === RUNNING || status === ACCEPTED;
}

/**
 * Whether a worker may deliver the result of this task without StartAssignment: an execution may go from accepted to
 * completed (Agenta protocol manifest, `state_transitions.allowed`).
 */
export function deliversUnstarted({ executionRequestId }: Pick<Task, "executionRequestId">): boolean {
  return executionRequestId !== "";
}

/** A status as people and metadata name it, e.g. `in_review`. */
export function statusName(status: TaskStatus): string {
  return NAMES.get(status) ?? "unspecified";
}

const NAMES = new Map<TaskStatus, string>(
  Object.entries(TaskStatus).map(([name, value]) => [value, name.toLowerCase()]),
);

/** The refusal of a transition that is not in the table. */
export function stateConflict(taskId: string, from: TaskStatus, to: TaskStatus): DeputeError {
  const names = { from: statusName(from), to: statusName(to) };
  return new DeputeError(
    ErrorReason.TASK_STATE_CONFLICT,
    `a task that is ${names.from} cannot become ${names.to}: ${nextStep(from)}`,
    { metadata: { task: taskId, ...names } },
  );
}

/** What moves a task on from a status, for the messages of refusals. */
function nextStep(from: TaskStatus): string {
  switch (from) {
    case PENDING:
      return "a worker takes it first, by TakeAssignments or WatchAssignments";
    case ACCEPTED:
      return "its worker starts it first, by StartAssignment";
    case RUNNING:
      return "its worker ends it, by CompleteAssignment or FailAssignment";
    case SUSPENDED:
      return "its delegator resumes it first, by ResumeTask";
    case INPUT_REQUIRED:
      return "its delegator answers first, by ProvideInput";
    case IN_REVIEW:
      return "its overseer decides first, by DecideReview of the verifier";
    default:
      return "it has ended, and a new task does it again";
  }
}

function key(from: TaskStatus, to: TaskStatus): number {
  return from * 100 + to;
}
