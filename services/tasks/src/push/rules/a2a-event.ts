import { create, type JsonValue, toJson } from "@bufbuild/protobuf";
import {
  type Artifact,
  ArtifactSchema,
  type Message,
  type StreamResponse,
  type TaskArtifactUpdateEvent,
  TaskState,
  type TaskStatus,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { MAX_ARTIFACTS, MAX_PARTS, textsOf, valueOfParts } from "@depute/wire/a2a";
import { MALFORMED, PeerFault, TOO_MUCH } from "./refusal.ts";

/** The state of a task at an A2A agent, as the agent's responses so far show it. */
export interface A2aTask {
  /** The agent's id of the task, 1 to 128 characters. */
  readonly id: string;
  /** The agent's id of the conversation; empty for none. */
  readonly contextId: string;
  /** The artifacts by their ids, in the order of their first pieces. */
  readonly artifacts: ReadonlyMap<string, Artifact>;
}

/** The effect of an agent's response on the attempt. */
export type A2aEvent =
  | { readonly kind: "progress"; readonly message: string }
  | { readonly kind: "complete"; readonly output: JsonValue }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "rejected"; readonly message: string }
  | { readonly kind: "cancelled"; readonly message: string }
  /** The agent waits for an answer or an authorization. The platform sends the answer in a message of the same task. */
  | { readonly kind: "asks"; readonly needs: "input" | "authorization"; readonly question: string }
  /** A change that needs no event in the task's log. */
  | { readonly kind: "moved" };

/** An event, and the task's state after the event. A direct reply has no task. */
export interface A2aStep {
  readonly task: A2aTask | undefined;
  readonly event: A2aEvent;
}

const MAX_ID = 128;
const MAX_PROGRESS_MESSAGE = 1000;
const MAX_MESSAGE = 2000;

/**
 * Reads one element of an A2A agent's stream, or the response of a call that returns a task. (A2A 3.1.2, 4.2.3)
 *
 * @param known the task's earlier state; undefined before the first element
 * @throws PeerFault ENDPOINT_MALFORMED, also for another task's element; LIMIT_EXCEEDED for too many artifacts or parts
 */
export function readA2aEvent({ payload }: StreamResponse, known: A2aTask | undefined): A2aStep {
  switch (payload.case) {
    case "task": {
      const { id, contextId, artifacts, status } = payload.value;
      requireTask(id, known);
      const held = new Map(artifacts.map((artifact) => [artifact.artifactId, artifact]));
      const task = bounded({ id, contextId, artifacts: held });
      return { task, event: eventOf(status, task) };
    }
    case "message":
      if (known !== undefined) throw malformed("a direct reply follows a task");
      return { task: undefined, event: { kind: "complete", output: valueOfParts(payload.value.parts) } };
    case "statusUpdate": {
      const task = requireKnown(payload.value.taskId, known);
      return { task, event: eventOf(payload.value.status, task) };
    }
    case "artifactUpdate": {
      const task = requireKnown(payload.value.taskId, known);
      return { task: withPiece(task, payload.value), event: { kind: "moved" } };
    }
    default:
      throw malformed("an element of the stream has no content");
  }
}

function eventOf(status: TaskStatus | undefined, task: A2aTask): A2aEvent {
  if (status === undefined) throw malformed("the task has no status");
  const message = textOf(status.message, MAX_MESSAGE);
  switch (status.state) {
    case TaskState.COMPLETED:
      return { kind: "complete", output: outputOf(task, status.message) };
    case TaskState.FAILED:
      return { kind: "failed", message };
    case TaskState.REJECTED:
      return { kind: "rejected", message };
    case TaskState.CANCELED:
      return { kind: "cancelled", message };
    case TaskState.INPUT_REQUIRED:
      return { kind: "asks", needs: "input", question: message };
    case TaskState.AUTH_REQUIRED:
      return { kind: "asks", needs: "authorization", question: message };
    case TaskState.WORKING:
      return message === ""
        ? { kind: "moved" }
        : { kind: "progress", message: textOf(status.message, MAX_PROGRESS_MESSAGE) };
    default:
      return { kind: "moved" };
  }
}

/** Adds a piece to its artifact, or replaces the artifact with the piece. (A2A 4.2.2) */
function withPiece(task: A2aTask, { artifact, append }: TaskArtifactUpdateEvent): A2aTask {
  if (artifact === undefined || artifact.artifactId === "") throw malformed("an artifact has no id");
  const earlier = task.artifacts.get(artifact.artifactId);
  const whole =
    append && earlier !== undefined
      ? create(ArtifactSchema, { ...earlier, parts: [...earlier.parts, ...artifact.parts] })
      : artifact;
  return bounded({ ...task, artifacts: new Map(task.artifacts).set(artifact.artifactId, whole) });
}

function bounded(task: A2aTask): A2aTask {
  const { size } = task.artifacts;
  if (size > MAX_ARTIFACTS) {
    throw new PeerFault(TOO_MUCH, `the agent sent more than ${MAX_ARTIFACTS} artifacts`);
  }
  const parts = [...task.artifacts.values()].reduce((sum, artifact) => sum + artifact.parts.length, 0);
  if (parts > MAX_PARTS) {
    throw new PeerFault(TOO_MUCH, `the agent sent more than ${MAX_PARTS} parts of artifacts`);
  }
  return task;
}

/**
 * Returns the result of a completed task. With one artifact, the result is the value of its parts. With several, it is
 * `{"artifacts": [...]}` in A2A's form. Without artifacts, it is the message of the status.
 */
function outputOf({ artifacts }: A2aTask, message: Message | undefined): JsonValue {
  const [only, ...more] = artifacts.values();
  if (only === undefined) return valueOfParts(message?.parts ?? []);
  if (more.length === 0) return valueOfParts(only.parts);
  return { artifacts: [only, ...more].map((artifact) => toJson(ArtifactSchema, artifact)) };
}

function textOf(message: Message | undefined, maxLength: number): string {
  return textsOf(message?.parts ?? [])
    .join("\n")
    .slice(0, maxLength);
}

function requireTask(id: string, known: A2aTask | undefined): void {
  if (id === "" || id.length > MAX_ID) throw malformed(`the task's id must be 1 to ${MAX_ID} characters`);
  if (known !== undefined && known.id !== id) throw malformed("an element is about another task");
}

function requireKnown(id: string, known: A2aTask | undefined): A2aTask {
  if (known === undefined) throw malformed("the stream does not begin with a task or a message");
  requireTask(id, known);
  return known;
}

function malformed(what: string): PeerFault {
  return new PeerFault(MALFORMED, `the agent does not conform to A2A: ${what}`);
}
