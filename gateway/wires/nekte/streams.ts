import { create } from "@bufbuild/protobuf";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type DelegateEvent, DelegateEventSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, fromTimestamp, reasonName } from "@depute/core";
import { type TaskView, toDelegateEvent, toError, viewAfter } from "./events.ts";

/** One event of a delegated task. `sequence` is its place in the task's log; absent for a fault of the stream. */
export interface Told {
  readonly event: DelegateEvent;
  readonly sequence?: bigint;
}

type Events = AsyncIterator<{ event?: TaskEvent | undefined }>;

/** A stream of a task's events that has begun. */
export interface Begun {
  readonly first: IteratorResult<{ event?: TaskEvent | undefined }>;
  readonly events: Events;
}

/** A stream, once it has its first event. */
export async function firstOf(stream: AsyncIterable<{ event?: TaskEvent | undefined }>): Promise<Begun> {
  const events = stream[Symbol.asyncIterator]();
  return { first: await events.next(), events };
}

/**
 * The events of a task as NEKTE tells them, after the last one that the caller has seen.
 *
 * @param signal aborts when the caller has left
 */
export async function* tellAll(
  first: IteratorResult<{ event?: TaskEvent | undefined }>,
  events: Events,
  begun: TaskView,
  after: bigint,
  signal: AbortSignal,
): AsyncGenerator<Told, void, undefined> {
  let view = begun;
  try {
    for (let item = first; item.done !== true; item = await events.next()) {
      const { event } = item.value;
      if (event === undefined) continue;
      const told = event.sequence <= after ? undefined : toDelegateEvent(event, view);
      view = viewAfter(event, view);
      if (told !== undefined) yield { event: told, sequence: event.sequence };
    }
  } catch (thrown) {
    if (signal.aborted) return;
    yield { event: create(DelegateEventSchema, { event: toError(thrown, view.taskId) }) };
  } finally {
    await events.return?.();
  }
}

/** How a task ended that has no result; undefined while it goes on. */
export function failureOf({ payload, taskId }: TaskEvent): DeputeError | undefined {
  switch (payload.case) {
    case "failed":
    case "rejected": {
      const { reason, message } = payload.value;
      return new DeputeError(ErrorReason.TASK_FAILED, message || reason, { metadata: { failure: reason } });
    }
    case "expired": {
      const { reason, message } = payload.value;
      if (reason === reasonName(ErrorReason.CONTEXT_EXPIRED)) {
        return new DeputeError(ErrorReason.CONTEXT_EXPIRED, message, { metadata: { context: "" } });
      }
      return new DeputeError(ErrorReason.TASK_TIMEOUT, message, {
        metadata: { task: taskId, limit: "total" },
      });
    }
    case "revoked":
      return new DeputeError(ErrorReason.TOKEN_DENIED, payload.value.message, {
        metadata: { denial: "revoked" },
      });
    case "cancelled":
      return new DeputeError(ErrorReason.TASK_FAILED, "the task was cancelled", {
        metadata: { failure: "CANCELLED" },
      });
    default:
      return undefined;
  }
}

/** When an event was recorded, epoch milliseconds; 0 where it does not say. */
export function timeOf({ eventTime }: TaskEvent): number {
  return eventTime === undefined ? 0 : fromTimestamp(eventTime);
}
