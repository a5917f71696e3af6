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

/** A task that has moved on, and the events that moved it, in order. */
export interface Advance {
  readonly record: TaskRecord;
  readonly events: readonly TaskEvent[];
}

export interface Step {
  readonly payload: TaskPayload;
  readonly by: Actor;
  /** The stream that takes the task, for a step that hands it to a worker. */
  readonly holder?: string;
  /** The call by which a worker ends its hold with this step. */
  readonly settles?: Settlement;
  /** The contract's check that decided this step. */
  readonly verification?: TaskVerification;
  /** The delegate's attestation that a failure comes from. */
  readonly attestationId?: string;
}

/**
 * Moves a task on by one event, and its hold with it.
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
  // What is noted of a task that waits leaves it where it stands.
  const waitsAnew = task.status === TaskStatus.PENDING && record.task.status !== TaskStatus.PENDING;
  const queuedMs = waitsAnew ? availableMs(step.payload, nowMs) : record.queuedMs;
  return { record: { ...next, hold, settled, queuedMs }, events: [event] };
}

/** From when on a task that waits may be taken. */
function availableMs(payload: TaskPayload, nowMs: number): number {
  if (payload.case !== "requeued" || payload.value.availableTime === undefined) return nowMs;
  return Math.max(nowMs, fromTimestamp(payload.value.availableTime));
}

/** The hold of a worker that goes on: the time that it waited for an answer is not its own. */
function holdAfter({ task, hold }: TaskRecord, { payload }: Step, nowMs: number): Hold | undefined {
  if (hold === undefined) return hold;
  if (payload.case === "deadlineMoved") return holdWithin(task, hold, payload.value);
  if (payload.case !== "inputProvided" || task.questionTime === undefined) return hold;
  const waitedMs = Math.max(0, nowMs - fromTimestamp(task.questionTime));
  return { ...hold, attemptDeadlineMs: hold.attemptDeadlineMs + waitedMs };
}

/** The hold of a task whose time was moved: an attempt that was bounded by nothing else has as much as the task. */
function holdWithin(before: Task, hold: Hold, { expireTime }: TaskDeadlineMoved): Hold {
  const { attempt, total } = limitsMs(before);
  if (expireTime === undefined || attempt < total) return hold;
  return { ...hold, attemptDeadlineMs: fromTimestamp(expireTime) };
}

/** The record after a sign of life of its worker. */
export function extendLease(record: TaskRecord, nowMs: number): TaskRecord {
  if (record.hold === undefined) return record;
  return { ...record, hold: { ...record.hold, leaseExpireMs: nowMs + limitsMs(record.task).heartbeat } };
}

/**
 * Moves a task on by the time limits that have passed. Everything that changes a task begins with this, so that a limit
 * holds to the millisecond, however late the timekeeper comes.
 */
export function advanceByTime(record: TaskRecord, circumstances: Circumstances): Advance {
  const { nowMs } = circumstances;
  const events: TaskEvent[] = [];
  let current = record;
  // A lost attempt may be followed by one more limit, that of the whole task; nothing follows that.
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
        failureOf(ErrorReason.LEASE_LOST, "the worker fell silent for longer than the heartbeat limit", true),
        circumstances,
      );
  }
}

/** The end of work whose context is gone before a worker gets it. (NEKTE 7) */
function contextExpired(): TaskPayload {
  const message =
    "a context that the task carries is gone: it has expired, was revoked, or was lost with its process";
  return { case: "expired", value: failureOf(ErrorReason.CONTEXT_EXPIRED, message) };
}

/** Ends a task that no worker can do. */
export function withoutContext(before: TaskRecord, nowMs: number): Advance {
  if (isTerminal(before.task.status)) return { record: before, events: [] };
  return advance(before, { payload: contextExpired(), by: "clock" }, nowMs);
}

function expired(message: string): TaskPayload {
  return { case: "expired", value: failureOf(ErrorReason.TASK_TIMEOUT, message) };
}
