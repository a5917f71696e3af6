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
import { type Random, toTimestamp } from "@depute/core";
import { failureOf, type TaskPayload } from "./apply-event.ts";
import { maxAttempts } from "./limits.ts";

/** The factor between consecutive waits, for a policy without a factor. */
export const DEFAULT_BACKOFF_FACTOR = 2;

/** Maximum wait in milliseconds before another attempt, for a policy without a maximum. */
export const DEFAULT_MAX_BACKOFF_MS = 3_600_000;

/** The time of a step, and the source of randomness for the jitter of backoffs. */
export interface Circumstances {
  /** The time of the step, in epoch milliseconds. */
  readonly nowMs: number;
  readonly random: Random;
}

/** Returns the wait between attempt number `attempt` and the next attempt, in milliseconds. */
export function backoffMs(policy: RetryPolicy | undefined, attempt: number, random: Random): number {
  if (policy?.initialBackoff === undefined) return 0;
  const longest = policy.maxBackoff === undefined ? DEFAULT_MAX_BACKOFF_MS : durationMs(policy.maxBackoff);
  const factor = policy.backoffFactor === 0 ? DEFAULT_BACKOFF_FACTOR : policy.backoffFactor;
  const whole = Math.min(durationMs(policy.initialBackoff) * factor ** Math.max(0, attempt - 1), longest);
  return Math.round(whole * (1 - policy.jitter * random()));
}

/**
 * Returns the event that follows a failed attempt: requeued, suspended as requested, cancelled as requested, or failed.
 */
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

/**
 * Returns the event for a task that its worker releases. Unless a request to cancel or suspend exists, the task returns
 * to the queue. The attempt does not count towards the maximum of attempts.
 */
export function afterRelease(task: Task): TaskPayload {
  if (task.cancellation !== undefined) return cancelled(task.cancellation);
  if (task.suspensionRequest !== undefined) return suspended(task, task.suspensionRequest, false);
  const cause = failureOf("RELEASED", "the worker released the task", true);
  return {
    case: "requeued",
    value: create(TaskRequeuedSchema, { cause, attempt: task.attempt, attemptCounted: false }),
  };
}

/** Returns the event that ends a task as cancelled. */
export function cancelled({
  reason,
}: Pick<TaskCancellation, "reason">): Extract<TaskPayload, { case: "cancelled" }> {
  return { case: "cancelled", value: create(TaskCancelledSchema, { reason }) };
}

/**
 * Returns the event that suspends a task. If the delegator has requested a cancellation, returns the event that ends
 * the task as cancelled.
 */
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
