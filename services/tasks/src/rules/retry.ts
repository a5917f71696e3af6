import { create } from "@bufbuild/protobuf";
import { TaskRequeuedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { RetryPolicy, Task, TaskFailure } from "@depute/contracts/depute/tasks/v1/task_pb";
import { failureOf, type TaskPayload } from "./apply-event.ts";

/** The attempts of a task whose policy names no number. */
export const DEFAULT_MAX_ATTEMPTS = 3;

/** How often a task is tried at most. */
export function maxAttempts(policy: RetryPolicy | undefined): number {
  return policy === undefined || policy.maxAttempts === 0 ? DEFAULT_MAX_ATTEMPTS : policy.maxAttempts;
}

/** What becomes of a task whose attempt ended by this failure: it waits again, or has failed. */
export function afterFailedAttempt(task: Task, cause: TaskFailure): TaskPayload {
  if (!cause.retryable || task.attempt >= maxAttempts(task.retry)) return { case: "failed", value: cause };
  const value = create(TaskRequeuedSchema, { cause, attempt: task.attempt, attemptCounted: true });
  return { case: "requeued", value };
}

/** What becomes of a task that its worker gives back unharmed: it waits again, and the attempt does not count. */
export function afterRelease(task: Task): TaskPayload {
  const cause = failureOf("RELEASED", "the worker gave the task back", true);
  return {
    case: "requeued",
    value: create(TaskRequeuedSchema, { cause, attempt: task.attempt, attemptCounted: false }),
  };
}
