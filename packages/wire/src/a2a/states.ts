import { type TaskQuestion, TaskQuestionKind, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { TaskState } from "@depute/contracts/lf/a2a/v1/a2a_pb";

/**
 * The A2A state of every status. (A2A 4.1.3) A suspended task is `INPUT_REQUIRED`, like a task with a question,
 * because both wait for the delegator.
 */
export const STATES: Readonly<Record<keyof typeof TaskStatus, TaskState>> = {
  UNSPECIFIED: TaskState.UNSPECIFIED,
  PENDING: TaskState.SUBMITTED,
  ACCEPTED: TaskState.SUBMITTED,
  RUNNING: TaskState.WORKING,
  SUSPENDED: TaskState.INPUT_REQUIRED,
  INPUT_REQUIRED: TaskState.INPUT_REQUIRED,
  IN_REVIEW: TaskState.WORKING,
  COMPLETED: TaskState.COMPLETED,
  REJECTED: TaskState.REJECTED,
  FAILED: TaskState.FAILED,
  CANCELLED: TaskState.CANCELED,
  EXPIRED: TaskState.FAILED,
  REVOKED: TaskState.FAILED,
};

const byNumber = new Map<number, TaskState>(
  Object.entries(TaskStatus).map(([name, number]) => [number, STATES[name as keyof typeof TaskStatus]]),
);

/**
 * Returns the A2A state of a status; UNSPECIFIED for a status that this version does not know. A task whose question
 * asks for an authorization is AUTH_REQUIRED. (A2A 7.6.1)
 */
export function stateOf(status: TaskStatus, question?: TaskQuestion): TaskState {
  const needsAuthorization = question?.kind === TaskQuestionKind.AUTHORIZATION;
  if (status === TaskStatus.INPUT_REQUIRED && needsAuthorization) return TaskState.AUTH_REQUIRED;
  return byNumber.get(status) ?? TaskState.UNSPECIFIED;
}

/** Returns the statuses of tasks that A2A may show as this state; see `stateOf` for the state of one task. */
export function statusesOf(state: TaskState): TaskStatus[] {
  if (state === TaskState.AUTH_REQUIRED) return [TaskStatus.INPUT_REQUIRED];
  return [...byNumber]
    .filter(([, shownState]) => shownState === state)
    .map(([number]) => number as TaskStatus);
}

const TERMINAL: ReadonlySet<TaskState> = new Set([
  TaskState.COMPLETED,
  TaskState.FAILED,
  TaskState.CANCELED,
  TaskState.REJECTED,
]);

const INTERRUPTED: ReadonlySet<TaskState> = new Set([TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED]);

/** Whether the state is final. */
export function isTerminal(state: TaskState): boolean {
  return TERMINAL.has(state);
}

/** Whether a task in this state waits for its delegator. */
export function isInterrupted(state: TaskState): boolean {
  return INTERRUPTED.has(state);
}

/**
 * Whether a blocking SendMessage returns when its task is in this state: the state is final, or the task waits for its
 * delegator. (A2A 3.2.2)
 */
export function isSettled(state: TaskState): boolean {
  return isTerminal(state) || isInterrupted(state);
}
