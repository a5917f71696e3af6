import { create, toJson } from "@bufbuild/protobuf";
import { type Timestamp, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Conversation } from "@depute/contracts/depute/tasks/v1/conversation_service_pb";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type TaskStatus as A2aStatus,
  type Task as A2aTask,
  type Artifact,
  type Message,
  MessageSchema,
  Role,
  type StreamResponse,
  StreamResponseSchema,
  TaskSchema,
  type TaskState,
  TaskStatusSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import {
  type ArtifactChunk,
  agentMessage,
  type Place,
  partialArtifacts,
  replyIn,
  resultArtifacts,
} from "./parts.ts";
import { stateOf } from "./states.ts";

/** Converts a task to the form of A2A. (A2A 4.1.1) */
export function toA2aTask(task: Task, history: readonly Message[] = []): A2aTask {
  const { id, correlationId: contextId, status, question, failure, lastSequence, updateTime } = task;
  const text = question?.prompt ?? (failure && (failure.message || failure.reason)) ?? "";
  const place = { taskId: id, contextId };
  const message = text === "" ? undefined : agentMessage(place, lastSequence, text, question?.details);
  return create(TaskSchema, {
    id,
    contextId,
    status: statusAt(stateOf(status, question), updateTime, message),
    artifacts: task.output?.full === undefined ? [] : resultArtifacts(task.output.full),
    history: [...history],
  });
}

/**
 * Converts a task and its messages to the form of A2A. Until the task has a result, the artifacts of its
 * preliminary results are included.
 *
 * @param until the sequence of the last event whose preliminary result is included; absent for all
 */
export function toConversation({ task, messages, partials }: Conversation, until?: bigint): A2aTask {
  if (task === undefined) throw new Error("a conversation without a task");
  const place = { taskId: task.id, contextId: task.correlationId };
  const history = messages.flatMap((event) => messageIn(event, place) ?? []);
  const shown = toA2aTask(task, history);
  if (task.output?.full !== undefined) return shown;
  return partials
    .filter(({ sequence }) => until === undefined || sequence <= until)
    .map((event) => changeOf(event, place))
    .reduce(changed, shown);
}

/** Returns the message that an event contains; undefined if it contains none. */
function messageIn(event: TaskEvent, place: Place): Message | undefined {
  return event.payload.case === "created" ? event.payload.value.message : changeOf(event, place).message;
}

/** Returns the A2A task that a `created` event describes. */
export function createdTask({ taskId, payload, status, eventTime }: TaskEvent): A2aTask {
  const message = payload.case === "created" ? payload.value.message : undefined;
  return create(TaskSchema, {
    id: taskId,
    // If the delegator names no context, the task begins a new context. The context's id is the task's id.
    contextId: message?.contextId || taskId,
    status: statusAt(stateOf(status), eventTime),
    history: message === undefined ? [] : [message],
  });
}

/** The changes that an event makes to an A2A task. */
export interface Change {
  readonly status?: A2aStatus;
  readonly artifacts?: readonly ArtifactChunk[];
  /** Whether `artifacts` are the task's result, which replaces all preliminary artifacts. */
  readonly isResult?: boolean;
  /** A message that the event adds to the history. */
  readonly message?: Message;
}

/** Returns the change that an event makes. The change is empty for an event that A2A does not show. */
export function changeOf(event: TaskEvent, place: Place): Change {
  const { payload, eventTime, sequence } = event;
  const state = stateOf(event.status);
  const status = (message?: Message) => statusAt(state, eventTime, message);
  const messageOf = (text: string) => (text === "" ? undefined : agentMessage(place, sequence, text));
  switch (payload.case) {
    case "started":
    case "requeued":
    case "resumed":
    case "submitted":
    case "changesRequested":
      return { status: status() };
    case "progress":
      return { status: status(messageOf(payload.value.message)) };
    case "suspended":
    case "cancelled":
      return { status: status(messageOf(payload.value.reason)) };
    case "failed":
    case "rejected":
    case "expired":
    case "revoked":
      return { status: status(messageOf(payload.value.message || payload.value.reason)) };
    case "inputRequired": {
      const { prompt, details } = payload.value;
      const message = agentMessage(place, sequence, prompt, details);
      return { status: statusAt(stateOf(event.status, payload.value), eventTime, message), message };
    }
    case "inputProvided": {
      const { message } = payload.value;
      return { status: status(), ...(message && { message }) };
    }
    case "partial": {
      const { output } = payload.value;
      return output === undefined ? {} : { artifacts: partialArtifacts(output) };
    }
    case "completed": {
      const { output } = payload.value;
      const artifacts =
        output?.full &&
        resultArtifacts(output.full).map((artifact) => ({ artifact, append: false, lastChunk: true }));
      return { status: status(), ...(artifacts && { artifacts, isResult: true }) };
    }
    default:
      return {};
  }
}

/**
 * Returns the message with which an agent answers without an A2A task; undefined if the event's result is not a
 * message.
 */
export function replyOf({ payload, taskId, sequence }: TaskEvent, contextId: string): Message | undefined {
  if (payload.case !== "completed" || payload.value.output?.full === undefined) return undefined;
  const parts = replyIn(toJson(ValueSchema, payload.value.output.full));
  if (parts === undefined) return undefined;
  return create(MessageSchema, { messageId: `${taskId}-${sequence}`, contextId, role: Role.AGENT, parts });
}

/** Returns the task after the changes that an event makes. */
export function changed(task: A2aTask, { status, artifacts = [], isResult, message }: Change): A2aTask {
  const after = { ...task };
  if (status !== undefined) after.status = status;
  if (message !== undefined) after.history = [...task.history, message];
  if (isResult) after.artifacts = artifacts.map(({ artifact }) => artifact);
  else if (artifacts.length > 0) {
    const ids = new Set(artifacts.map(({ artifact }) => artifact.artifactId));
    const others = task.artifacts.filter(({ artifactId }) => !ids.has(artifactId));
    after.artifacts = [...others, ...artifacts.map((chunk) => combined(task.artifacts, chunk))];
  }
  return after;
}

/**
 * Adds a chunk to the task's artifacts, and returns the resulting artifact. An appended chunk adds its parts to the
 * existing artifact; any other chunk replaces the artifact.
 */
function combined(before: readonly Artifact[], { artifact, append }: ArtifactChunk): Artifact {
  const existing = before.find(({ artifactId }) => artifactId === artifact.artifactId);
  if (!append || existing === undefined) return artifact;
  return { ...existing, parts: [...existing.parts, ...artifact.parts] };
}

/** Returns the elements of a stream that report a change: first its artifacts, then its status. (A2A 4.2) */
export function toStream({ status, artifacts = [] }: Change, { taskId, contextId }: Place): StreamResponse[] {
  const responses: StreamResponse[] = [];
  for (const artifact of artifacts) {
    const value = { taskId, contextId, ...artifact };
    responses.push(create(StreamResponseSchema, { payload: { case: "artifactUpdate", value } }));
  }
  if (status !== undefined) {
    const value = { taskId, contextId, status };
    responses.push(create(StreamResponseSchema, { payload: { case: "statusUpdate", value } }));
  }
  return responses;
}

/** Returns a task with only its newest `length` messages; with all messages if `length` is undefined. (A2A 3.2.4) */
export function withHistory(task: A2aTask, length: number | undefined): A2aTask {
  if (length === undefined || task.history.length <= length) return task;
  return { ...task, history: length === 0 ? [] : task.history.slice(-length) };
}

function statusAt(state: TaskState, timestamp: Timestamp | undefined, message?: Message): A2aStatus {
  return create(TaskStatusSchema, { state, ...(timestamp && { timestamp }), ...(message && { message }) });
}
