import { create } from "@bufbuild/protobuf";
import { type TaskEvent, TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskFailureSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, fromTimestamp, reasonName, toTimestamp } from "@depute/core";
import { exceeded, type Overdraft } from "./spend.ts";
import {
  type Actor,
  canTransition,
  deliversUnstarted,
  HELD_STATUSES,
  isHeld,
  isTerminal,
  OPEN_STATUSES,
  stateConflict,
} from "./state-machine.ts";

/** The payload of an event, without the event's time and its position in the log. */
export type TaskPayload = Exclude<TaskEvent["payload"], { case: undefined }>;

/** The payloads that change a task's status, each with the new status. */
const MOVES = {
  created: TaskStatus.PENDING,
  accepted: TaskStatus.ACCEPTED,
  started: TaskStatus.RUNNING,
  requeued: TaskStatus.PENDING,
  suspended: TaskStatus.SUSPENDED,
  resumed: TaskStatus.PENDING,
  inputRequired: TaskStatus.INPUT_REQUIRED,
  inputProvided: TaskStatus.RUNNING,
  submitted: TaskStatus.IN_REVIEW,
  changesRequested: TaskStatus.PENDING,
  completed: TaskStatus.COMPLETED,
  failed: TaskStatus.FAILED,
  cancelled: TaskStatus.CANCELLED,
  rejected: TaskStatus.REJECTED,
  expired: TaskStatus.EXPIRED,
  revoked: TaskStatus.REVOKED,
} as const satisfies Partial<Record<TaskPayload["case"], TaskStatus>>;

interface Note {
  readonly by: Actor;
  readonly within: readonly TaskStatus[];
}

/**
 * The payloads that leave a task's status unchanged. Each has the actor that may cause it, and the statuses in which it
 * may occur.
 */
const NOTES: Record<Exclude<TaskPayload["case"], keyof typeof MOVES>, Note> = {
  progress: { by: "worker", within: [TaskStatus.RUNNING] },
  partial: { by: "worker", within: [TaskStatus.RUNNING] },
  checkpointed: { by: "worker", within: [TaskStatus.RUNNING, TaskStatus.INPUT_REQUIRED] },
  estimated: { by: "worker", within: [TaskStatus.ACCEPTED, TaskStatus.RUNNING, TaskStatus.INPUT_REQUIRED] },
  suspensionRequested: { by: "delegator", within: [TaskStatus.RUNNING, TaskStatus.INPUT_REQUIRED] },
  cancellationRequested: { by: "delegator", within: HELD_STATUSES },
  deadlineMoved: { by: "delegator", within: OPEN_STATUSES },
};

function isMove(name: TaskPayload["case"]): name is keyof typeof MOVES {
  return name in MOVES;
}

function statusAfter(task: Task, { case: name }: TaskPayload): TaskStatus {
  return isMove(name) ? MOVES[name] : task.status;
}

/**
 * Returns the next event of a task's log. Times in a log never decrease, even if the clocks of processes differ.
 *
 * @throws DeputeError TASK_STATE_CONFLICT if the state machine does not allow this transition for this actor
 */
export function nextEvent(task: Task, payload: TaskPayload, by: Actor, nowMs: number): TaskEvent {
  checkTransition(task, payload, by);
  const status = statusAfter(task, payload);
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
 * Returns the task after an event. A task's state follows from the fields set at its creation and from all events in
 * its log, in order.
 *
 * @throws DeputeError TASK_STATE_CONFLICT for an illegal transition; Error for an event of another task, out of order
 * or without a payload
 */
export function applyEvent(task: Task, event: TaskEvent): Task {
  const { payload } = event;
  if (event.taskId !== task.id) throw new Error(`an event of ${event.taskId} was applied to ${task.id}`);
  if (event.sequence !== task.lastSequence + 1n) {
    throw new Error(`event ${event.sequence} was applied to a log of ${task.lastSequence}`);
  }
  if (payload.case === undefined) throw new Error(`event ${event.sequence} has no payload`);
  checkTransition(task, payload);
  const after: Task = { ...task, status: event.status, lastSequence: event.sequence };
  if (event.eventTime !== undefined) {
    after.updateTime = event.eventTime;
    if (isTerminal(event.status)) after.endTime = event.eventTime;
  }
  if (event.status !== event.previousStatus) forgetInterruptions(after);
  if (event.verification !== undefined) after.verification = event.verification;
  if (event.attestationId !== "") after.attestationId = event.attestationId;
  applyPayload(after, payload, event);
  return after;
}

/**
 * Deletes the worker's question. If no worker holds the task any more, also deletes the requests to suspend or cancel.
 * Of an ended task, also clears `checkpointAvailable`.
 */
function forgetInterruptions(after: Task): void {
  delete after.question;
  delete after.questionTime;
  if (!isHeld(after.status)) {
    delete after.suspensionRequest;
    delete after.cancellation;
  }
  if (isTerminal(after.status)) after.checkpointAvailable = false;
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
      // The time limit for the start does not apply once the work has begun.
      delete after.startExpireTime;
      return;
    case "partial":
      return;
    case "progress":
      after.progress = payload.value;
      return;
    case "checkpointed":
      after.checkpointAvailable = true;
      return;
    case "suspensionRequested":
      after.suspensionRequest = payload.value.reason;
      return;
    case "cancellationRequested":
      after.cancellation = payload.value;
      return;
    case "deadlineMoved":
      if (payload.value.expireTime !== undefined) after.expireTime = payload.value.expireTime;
      if (payload.value.limits !== undefined) after.limits = payload.value.limits;
      return;
    case "inputRequired":
      after.question = payload.value;
      if (event.eventTime !== undefined) after.questionTime = event.eventTime;
      return;
    case "inputProvided":
    case "submitted":
      return;
    case "estimated":
      after.estimate = payload.value;
      return;
    case "changesRequested":
      after.reviewComment = payload.value.comment;
      // If the reviewer requests changes, the attempt does not count. A result that was attested without a lease has
      // attempt 0, which must not become -1.
      after.attempt = Math.max(0, payload.value.attempt - 1);
      return;
    case "resumed":
      if (payload.value.budget !== undefined) after.budget = payload.value.budget;
      if (payload.value.spend !== undefined) after.spend = payload.value.spend;
      return;
    case "suspended":
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
  const name = payload.case;
  if (!isMove(name)) {
    const note = NOTES[name];
    const legal = note.within.includes(task.status) && (by === undefined || by === note.by);
    if (!legal) throw stateConflict(task.id, task.status, note.within[0] ?? TaskStatus.RUNNING);
    return;
  }
  const to = MOVES[name];
  const legal =
    name === "created"
      ? task.status === TaskStatus.UNSPECIFIED && (by === undefined || by === "delegator")
      : canTransition(task.status, to, by) &&
        (name !== "cancelled" || mayCancel(task, by)) &&
        (to === TaskStatus.CANCELLED || mayDeliver(task, to, by));
  if (!legal) throw stateConflict(task.id, task.status, to);
}

/**
 * Whether a worker may deliver a result now. A worker may deliver for an unstarted task only if `deliversUnstarted`
 * allows it.
 */
function mayDeliver(task: Task, to: TaskStatus, by: Actor | undefined): boolean {
  const isDelivery = to === TaskStatus.COMPLETED || to === TaskStatus.IN_REVIEW;
  if (!isDelivery || by !== "worker" || task.status !== TaskStatus.ACCEPTED) return true;
  return deliversUnstarted(task);
}

/**
 * Whether the actor may end the task as cancelled. A worker or the clock may do so only if the delegator requested the
 * cancellation.
 */
function mayCancel({ cancellation }: Task, by: Actor | undefined): boolean {
  return cancellation !== undefined || (by !== "worker" && by !== "clock");
}

/** Creates a failure. For an `ErrorReason`, the failure's reason is the name of that constant. */
export function failureOf(reason: ErrorReason | string, message: string, retryable = false) {
  const word = typeof reason === "string" ? reason : reasonName(reason);
  return create(TaskFailureSchema, { reason: word, message, retryable });
}

/** Returns the event that fails a task because its use exceeds its budget. */
export function overspent({ unit, needed, allowed }: Overdraft): Extract<TaskPayload, { case: "failed" }> {
  const { message } = exceeded(unit, needed, allowed);
  return { case: "failed", value: failureOf(ErrorReason.BUDGET_EXCEEDED, message) };
}
