import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  TaskCancelledSchema,
  TaskRequeuedSchema,
  TaskSuspendedSchema,
} from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type {
  RetryPolicy,
  Task,
  TaskCancellation,
  TaskFailure,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import { failureOf, type TaskPayload } from "./apply-event.ts";

/** The attempts of a task whose policy names no number. */
export const DEFAULT_MAX_ATTEMPTS = 3;

/** How much longer each wait is than the one before, where the policy does not say. */
export const DEFAULT_BACKOFF_FACTOR = 2;

/** The longest wait before another attempt, where the policy does not say; milliseconds. */
export const DEFAULT_MAX_BACKOFF_MS = 3_600_000;

/** A number from 0 up to but not including 1, as Math.random. */
export type Random = () => number;

/** When something happens, and the chance that it happens by. */
export interface Circumstances {
  /** Epoch milliseconds. */
  readonly nowMs: number;
  readonly random: Random;
}

/** How often a task is tried at most. */
export function maxAttempts(policy: RetryPolicy | undefined): number {
  return policy === undefined || policy.maxAttempts === 0 ? DEFAULT_MAX_ATTEMPTS : policy.maxAttempts;
}

/** Milliseconds before the attempt after the `attempt`th one. */
export function backoffMs(policy: RetryPolicy | undefined, attempt: number, random: Random): number {
  if (policy?.initialBackoff === undefined) return 0;
  const longest = policy.maxBackoff === undefined ? DEFAULT_MAX_BACKOFF_MS : durationMs(policy.maxBackoff);
  const factor = policy.backoffFactor === 0 ? DEFAULT_BACKOFF_FACTOR : policy.backoffFactor;
  const whole = Math.min(durationMs(policy.initialBackoff) * factor ** Math.max(0, attempt - 1), longest);
  return Math.round(whole * (1 - policy.jitter * random()));
}

/** What becomes of a task whose attempt ended by this failure: it waits again, is suspended as asked for, or has failed. */
export function afterFailedAttempt(
  task: Task,
  cause: TaskFailure,
  { nowMs, random }: Circumstances,
): TaskPayload {
  const { retry, attempt, suspensionRequest, cancellation } = task;
  if (cancellation !== undefined) return cancelled(cancellation);
  const final = !cause.retryable || retry?.nonRetryableReasons.includes(cause.reason) === true;
  if (final || attempt >= maxAttempts(retry)) return { case: "failed", value: cause };
  if (suspensionRequest !== undefined) return suspended(task, suspensionRequest, true);
  const value = create(TaskRequeuedSchema, {
    cause,
    attempt,
    attemptCounted: true,
    availableTime: toTimestamp(nowMs + backoffMs(retry, attempt, random)),
  });
  return { case: "requeued", value };
}

/** What becomes of a task that its worker gives back unharmed: it waits again, and the attempt does not count. */
export function afterRelease(task: Task): TaskPayload {
  if (task.cancellation !== undefined) return cancelled(task.cancellation);
  if (task.suspensionRequest !== undefined) return suspended(task, task.suspensionRequest, false);
  const cause = failureOf("RELEASED", "the worker gave the task back", true);
  return {
    case: "requeued",
    value: create(TaskRequeuedSchema, { cause, attempt: task.attempt, attemptCounted: false }),
  };
}

/** The end of work that its delegator has called off. */
export function cancelled({
  reason,
}: Pick<TaskCancellation, "reason">): Extract<TaskPayload, { case: "cancelled" }> {
  return { case: "cancelled", value: create(TaskCancelledSchema, { reason }) };
}

/** The interruption of an attempt. What was called off is not interrupted: it is over. */
export function suspended(
  { attempt, checkpointAvailable, cancellation }: Task,
  reason: string,
  attemptCounted: boolean,
): Extract<TaskPayload, { case: "suspended" | "cancelled" }> {
  if (cancellation !== undefined) return cancelled(cancellation);
  return {
    case: "suspended",
    value: create(TaskSuspendedSchema, { reason, checkpointAvailable, attempt, attemptCounted }),
  };
}
