import { create } from "@bufbuild/protobuf";
import { type TaskEvent, TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskFailureSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type ErrorReason, fromTimestamp, reasonName, toTimestamp } from "@depute/core";
import { type Actor, canTransition, isTerminal, stateConflict } from "./state-machine.ts";

/** What happened, without when and where in the log. */
export type TaskPayload = Exclude<TaskEvent["payload"], { case: undefined }>;

/** The status that each payload leads to; a report leaves the task running. */
const STATUS_AFTER: Record<TaskPayload["case"], TaskStatus> = {
  created: TaskStatus.PENDING,
  accepted: TaskStatus.ACCEPTED,
  started: TaskStatus.RUNNING,
  progress: TaskStatus.RUNNING,
  partial: TaskStatus.RUNNING,
  requeued: TaskStatus.PENDING,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
  cancelled: TaskStatus.CANCELLED,
  rejected: TaskStatus.REJECTED,
  expired: TaskStatus.EXPIRED,
  revoked: TaskStatus.REVOKED,
};

/**
 * The next event of a task's log. Times in a log never go back, whatever the clocks of the processes do.
 *
 * @throws DeputeError TASK_STATE_CONFLICT when the table has no such transition for this actor
 */
export function nextEvent(task: Task, payload: TaskPayload, by: Actor, nowMs: number): TaskEvent {
  const status = STATUS_AFTER[payload.case];
  checkTransition(task, payload, by);
  const lastMs = task.updateTime === undefined ? nowMs : fromTimestamp(task.updateTime);
  return create(TaskEventSchema, {
    taskId: task.id,
    sequence: task.lastSequence + 1n,
    eventTime: toTimestamp(Math.max(nowMs, lastMs)),
    status,
    previousStatus: task.status,
    payload,
  });
}

/**
 * The task after an event: a task is always the fold of its log over what its creation fixed.
 *
 * @throws DeputeError TASK_STATE_CONFLICT for an illegal transition; Error for an event that is not the log's next one
 */
export function applyEvent(task: Task, event: TaskEvent): Task {
  const { payload } = event;
  if (event.taskId !== task.id) throw new Error(`an event of ${event.taskId} was applied to ${task.id}`);
  if (event.sequence !== task.lastSequence + 1n) {
    throw new Error(`event ${event.sequence} was applied to a log of ${task.lastSequence}`);
  }
  if (payload.case === undefined) throw new Error(`event ${event.sequence} says nothing`);
  checkTransition(task, payload);
  const after: Task = { ...task, status: event.status, lastSequence: event.sequence };
  if (event.eventTime !== undefined) {
    after.updateTime = event.eventTime;
    if (isTerminal(event.status)) after.endTime = event.eventTime;
  }
  if (event.verification !== undefined) after.verification = event.verification;
  applyPayload(after, payload, event);
  return after;
}

function applyPayload(after: Task, payload: TaskPayload, event: TaskEvent): void {
  switch (payload.case) {
    case "created":
      if (event.eventTime !== undefined) after.createTime = event.eventTime;
      return;
    case "accepted":
      after.attempt = payload.value.attempt;
      return;
    case "started":
    case "partial":
      return;
    case "progress":
      after.progress = payload.value;
      return;
    case "requeued":
      if (!payload.value.attemptCounted) after.attempt = payload.value.attempt - 1;
      return;
    case "completed": {
      const { output, usage, verification, attestationId } = payload.value;
      if (output !== undefined) after.output = output;
      if (usage !== undefined) after.usage = usage;
      if (verification !== undefined) after.verification = verification;
      after.attestationId = attestationId;
      return;
    }
    case "cancelled":
      after.failure = create(TaskFailureSchema, { reason: "CANCELLED", message: payload.value.reason });
      return;
    case "failed":
    case "rejected":
    case "expired":
    case "revoked":
      after.failure = payload.value;
  }
}

function checkTransition(task: Task, payload: TaskPayload, by?: Actor): void {
  const to = STATUS_AFTER[payload.case];
  const legal =
    payload.case === "created"
      ? task.status === TaskStatus.UNSPECIFIED && (by === undefined || by === "delegator")
      : payload.case === "progress" || payload.case === "partial"
        ? task.status === TaskStatus.RUNNING && (by === undefined || by === "worker")
        : canTransition(task.status, to, by);
  if (!legal) throw stateConflict(task.id, task.status, to);
}

/** A failure with a reason of the vocabulary. */
export function failureOf(reason: ErrorReason | string, message: string, retryable = false) {
  const word = typeof reason === "string" ? reason : reasonName(reason);
  return create(TaskFailureSchema, { reason: word, message, retryable });
}
