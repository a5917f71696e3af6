import { create } from "@bufbuild/protobuf";
import type { TaskDeadlineMoved, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type Task,
  TaskCancellationSchema,
  TaskStatus,
  type TaskVerification,
} from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, fromTimestamp } from "@depute/core";
import { applyEvent, failureOf, nextEvent, type TaskPayload } from "./apply-event.ts";
import { type Limit, limitsMs, passedDeadline } from "./limits.ts";
import type { Hold, Settlement, TaskRecord } from "./record.ts";
import { afterFailedAttempt, type Circumstances, cancelled } from "./retry.ts";
import { type Actor, isHeld, isTerminal } from "./state-machine.ts";

/** A changed task, and the events that caused the change, in order. */
export interface Advance {
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
}

export interface Step {
  readonly payload: TaskPayload;
  readonly by: Actor;
  /** The holder of the new lease, if the step dispatches the task to a worker. */
  readonly holder?: string;
  /** The kind of the worker's call, if the call ends the lease. */
  readonly settles?: Settlement;
  /** The outcome of the contract's check, if the check decided this step. */
  readonly verification?: TaskVerification;
  /** The id of the delegate's attestation, if an attestation reported the failure. */
  readonly attestationId?: string;
}

/**
 * Applies one event to a task, and changes the worker's hold accordingly.
 *
 * @throws DeputeError TASK_STATE_CONFLICT
 */
export function advance(record: TaskRecord, step: Step, nowMs: number): Advance {
  const event = nextEvent(record.task, step.payload, step.by, nowMs);
  if (step.verification !== undefined) event.verification = step.verification;
  if (step.attestationId !== undefined) event.attestationId = step.attestationId;
  const task = applyEvent(record.task, event);
  const next = { ...record, task };
  if (task.status === TaskStatus.ACCEPTED && step.holder !== undefined) {
    const { attempt, heartbeat } = limitsMs(task);
    return {
      record: {
        ...next,
        epoch: record.epoch + 1,
        hold: {
          holder: step.holder,
          leaseExpireMs: nowMs + heartbeat,
          attemptDeadlineMs: nowMs + attempt,
        },
      },
      events: [event],
    };
  }
  const settled = step.settles === undefined ? record.settled : { by: step.settles, epoch: record.epoch };
  const hold = isHeld(task.status) ? holdAfter(record, step, nowMs) : undefined;
  // A pending task that stays pending keeps its position in the queue.
  const waitsAnew = task.status === TaskStatus.PENDING && record.task.status !== TaskStatus.PENDING;
  const queuedMs = waitsAnew ? availableMs(step.payload, nowMs) : record.queuedMs;
  return { record: { ...next, hold, settled, queuedMs }, events: [event] };
}

/** Returns the time from which workers may take a pending task, in epoch milliseconds. */
function availableMs(payload: TaskPayload, nowMs: number): number {
  if (payload.case !== "requeued" || payload.value.availableTime === undefined) return nowMs;
  return Math.max(nowMs, fromTimestamp(payload.value.availableTime));
}

/**
 * Returns the hold after a step, if the worker still holds the task. The time for which the worker waited for an answer
 * does not count towards the attempt's limit.
 */
function holdAfter({ task, hold }: TaskRecord, { payload }: Step, nowMs: number): Hold | undefined {
  if (hold === undefined) return hold;
  if (payload.case === "deadlineMoved") return holdWithin(task, hold, payload.value);
  if (payload.case !== "inputProvided" || task.questionTime === undefined) return hold;
  const waitedMs = Math.max(0, nowMs - fromTimestamp(task.questionTime));
  return { ...hold, attemptDeadlineMs: hold.attemptDeadlineMs + waitedMs };
}

/**
 * Returns the hold after a move of the task's deadline. If the attempt's limit is the task's total limit, the attempt
 * ends at the new deadline.
 */
function holdWithin(before: Task, hold: Hold, { expireTime }: TaskDeadlineMoved): Hold {
  const { attempt, total } = limitsMs(before);
  if (expireTime === undefined || attempt < total) return hold;
  return { ...hold, attemptDeadlineMs: fromTimestamp(expireTime) };
}

/** Returns the record with an extended lease. Each call of the task's worker extends the lease. */
export function extendLease(record: TaskRecord, nowMs: number): TaskRecord {
  if (record.hold === undefined) return record;
  return { ...record, hold: { ...record.hold, leaseExpireMs: nowMs + limitsMs(record.task).heartbeat } };
}

/**
 * Applies the time limits that have passed. Every change of a task begins with this call, so a limit takes effect even
 * if the timekeeper is late.
 */
export function advanceByTime(record: TaskRecord, circumstances: Circumstances): Advance {
  const { nowMs } = circumstances;
  const events: TaskEvent[] = [];
  let current = record;
  // A lost attempt may requeue a task whose total limit has also passed. So the loop repeats until no passed limit
  // remains.
  for (let deadline = passedDeadline(current, nowMs); deadline !== undefined; ) {
    const step = { payload: payloadOf(current, deadline.limit, circumstances), by: "clock" } as const;
    const advanced = advance(current, step, nowMs);
    current = advanced.record;
    events.push(...advanced.events);
    deadline = passedDeadline(current, nowMs);
  }
  return { record: current, events };
}

function payloadOf({ task }: TaskRecord, limit: Limit, circumstances: Circumstances): TaskPayload {
  switch (limit) {
    case "cancellation":
      return cancelled(task.cancellation ?? create(TaskCancellationSchema));
    case "total":
      return expired("the task was not finished within its total limit");
    case "start":
      return expired("the work did not begin in time");
    case "queue":
      return expired("no worker took the task within its queue limit");
    case "context":
      return contextExpired();
    case "attempt":
      return afterFailedAttempt(
        task,
        failureOf(ErrorReason.TASK_TIMEOUT, "the attempt was not finished within its limit", true),
        circumstances,
      );
    case "heartbeat":
      return afterFailedAttempt(
        task,
        failureOf(ErrorReason.LEASE_LOST, "the worker sent no heartbeat within the heartbeat limit", true),
        circumstances,
      );
  }
}

/** Returns the event that ends a task because one of its contexts expired, was revoked or was lost. (NEKTE 7) */
function contextExpired(): TaskPayload {
  const message = "a context of the task has expired, was revoked, or was lost with its process";
  return { case: "expired", value: failureOf(ErrorReason.CONTEXT_EXPIRED, message) };
}

/**
 * Ends a task because one of its contexts expired, was revoked or was lost. Leaves a task in a terminal state
 * unchanged.
 */
export function withoutContext(before: TaskRecord, nowMs: number): Advance {
  if (isTerminal(before.task.status)) return { record: before, events: [] };
  return advance(before, { payload: contextExpired(), by: "clock" }, nowMs);
}

function expired(message: string): TaskPayload {
  return { case: "expired", value: failureOf(ErrorReason.TASK_TIMEOUT, message) };
}
