import { create } from "@bufbuild/protobuf";
import {
  type Task as A2aTask,
  type Message,
  type StreamResponse,
  StreamResponseSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { A2A_EXTENSIONS } from "@depute/core";
import {
  changed,
  changeOf,
  inModes,
  isSettled,
  isTerminal,
  replyOf,
  toStream,
  withHistory,
} from "@depute/wire/a2a";
import type { StreamItem } from "../../edge/started-stream.ts";
import type { A2aCall } from "./call.ts";
import { type TaskMetadata, withMetadata } from "./task-metadata.ts";

/** A task in its state at the start of a call, and the stream of its later events. */
export interface Begun {
  readonly task: A2aTask;
  /** The sequence of the newest event that `task` includes. */
  readonly sequence: bigint;
  readonly events: AsyncIterator<StreamItem>;
}

/** The client's requirements for the form of a returned task. */
export interface Form {
  /** Maximum number of messages in the history; absent for no maximum. */
  readonly historyLength?: number | undefined;
  /** The media types that the client accepts; absent or empty if it accepts all. */
  readonly modes?: readonly string[] | undefined;
}

export function stateIn({ status }: Pick<A2aTask, "status">) {
  if (status === undefined) throw new Error("the task has no status");
  return status.state;
}

/** Returns the task with the parts of its artifacts in the media types in `modes`: see inModes. */
export function withModes(task: A2aTask, modes: readonly string[]): A2aTask {
  return { ...task, artifacts: task.artifacts.map((artifact) => inModes(artifact, modes)) };
}

/**
 * Waits until the task has ended, or waits for an action of the caller. Returns the task, and the reply if the task's
 * result is a message. If the stream ends earlier, returns the task in its last known state. (A2A 3.2.2)
 */
export async function settled({ task: first, events }: Begun): Promise<{ task: A2aTask; reply?: Message }> {
  let task = first;
  let reply: Message | undefined;
  // Reads the stream of an ended task to its end. Otherwise the metrics would count the call as cancelled.
  while (!isSettled(stateIn(task)) || isTerminal(stateIn(task))) {
    const item = await events.next();
    if (item.done === true) break;
    const { taskEvent: event } = item.value;
    if (event === undefined) continue;
    task = changed(task, changeOf(event, placeOf(task)));
    reply ??= replyOf(event, task.contextId);
  }
  return reply === undefined ? { task } : { task, reply };
}

/**
 * Yields the task, then the task's events until the task ends. (A2A 3.1.2, 3.1.6)
 *
 * @param data reads the extensions' data at the start, and again when the task ends or waits for the caller
 */
export async function* streamOf(
  { task, sequence, events }: Begun,
  { historyLength, modes = [] }: Form,
  a2aCall: A2aCall,
  data: TaskMetadata,
): AsyncGenerator<StreamResponse, void, undefined> {
  const place = placeOf(task);
  const isNumbered = a2aCall.extensions.has(A2A_EXTENSIONS.RESUMABLE_STREAMS.uri);
  const toResponse = (response: StreamResponse, at: bigint) =>
    isNumbered ? numbered(response, at) : response;
  try {
    const value = await data.addTo(withModes(withHistory(task, historyLength), modes), a2aCall);
    yield toResponse(create(StreamResponseSchema, { payload: { case: "task", value } }), sequence);
    for (let item = await events.next(); item.done !== true; item = await events.next()) {
      const { taskEvent: event } = item.value;
      if (event === undefined) continue;
      const change = changeOf(event, place);
      const chunks = change.artifacts?.map((chunk) => ({
        ...chunk,
        artifact: inModes(chunk.artifact, modes),
      }));
      for (const response of toStream({ ...change, ...(chunks && { artifacts: chunks }) }, place)) {
        const { payload } = response;
        const settles = payload.case === "statusUpdate" && isSettled(stateIn(payload.value));
        const metadata = settles ? await data.of(task.id, a2aCall) : undefined;
        yield toResponse(
          metadata === undefined ? response : withMetadata(response, metadata),
          event.sequence,
        );
      }
    }
  } finally {
    await events.return?.();
  }
}

/** Adds the event's sequence to an element of a stream, under the URI of the extension for resumable streams. */
function numbered(response: StreamResponse, sequence: bigint): StreamResponse {
  return withMetadata(response, { [A2A_EXTENSIONS.RESUMABLE_STREAMS.uri]: { sequence: Number(sequence) } });
}

function placeOf({ id: taskId, contextId }: A2aTask) {
  return { taskId, contextId };
}
