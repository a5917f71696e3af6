import { toJson } from "@bufbuild/protobuf";
import { stateName } from "@depute/asp";
import type { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { TranscriptEntrySchema } from "@depute/contracts/asp/v0/transcript_pb";
import type {
  WatchDelegationResponse,
  WatchSessionResponse,
} from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { encode } from "@depute/wire";
import type { SseEvent } from "../../edge/sse.ts";
import { toAspError } from "./errors.ts";

/**
 * Converts a session's messages to server-sent events. The events have the names of ASP's WebSocket frames:
 * `message`, `session_state`, `error`.
 */
export async function* toSse(
  watched: AsyncIterable<WatchSessionResponse>,
  requestId: string,
): AsyncGenerator<SseEvent, void, undefined> {
  let lastState: SessionState | undefined;
  try {
    for await (const { entry, state } of watched) {
      if (entry !== undefined) {
        yield { event: "message", id: String(entry.ordinal), data: encode(TranscriptEntrySchema, entry) };
      }
      if (state !== lastState) yield { event: "session_state", data: { state: stateName(state) } };
      lastState = state;
    }
  } catch (thrown) {
    yield { event: "error", data: toAspError(thrown, requestId).body };
  }
}

/**
 * Converts the events of a delegation's task to server-sent events. The name of each event is its kind, such as
 * `created`, `progress` or `completed`. If the stream fails, the last event is `error`.
 */
export async function* toWorkSse(
  watched: AsyncIterable<WatchDelegationResponse>,
  requestId: string,
): AsyncGenerator<SseEvent, void, undefined> {
  try {
    for await (const { taskEvent: event } of watched) {
      if (event?.payload.case === undefined) continue;
      const { sequence, payload } = event;
      yield { event: payload.case, id: String(sequence), data: toJson(TaskEventSchema, event) };
    }
  } catch (thrown) {
    yield { event: "error", data: toAspError(thrown, requestId).body };
  }
}
