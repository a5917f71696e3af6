import { create, type JsonValue } from "@bufbuild/protobuf";
import type { TaskCompleted, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type DelegateEvent,
  DelegateEventSchema,
  type MultiLevelResult,
  MultiLevelResultSchema,
  type TokenBudget,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, fromTimestamp, invalid, reasonName } from "@depute/core";
import { encode } from "@depute/wire";
import { refusalIn } from "../../edge/fault.ts";
import type { SseEvent } from "../../edge/sse.ts";
import type { StartedStream } from "../../edge/started-stream.ts";
import { fittingLevels, fittingPartial, type LevelledOutput, tokensUsed, toPlain } from "./budget.ts";
import { codeOf, endCode, reasonOfEnd } from "./errors.ts";
import { type NekteState, stateOf, stateOnceBegun } from "./states.ts";

/** The facts about a task that are needed to convert its events. */
export interface TaskView {
  /** The id that the caller gave the task. */
  readonly taskId: string;
  readonly budget: TokenBudget | undefined;
  /** Time of the task's first event, in milliseconds since the Unix epoch. */
  readonly beganMs: number;
  /** Whether the task returned to the queue before the event that is converted. */
  readonly wasRequeued: boolean;
}

/** Returns the view for the events that follow this event. */
export function viewAfter({ payload }: TaskEvent, view: TaskView): TaskView {
  switch (payload.case) {
    case "requeued":
    case "changesRequested":
      return { ...view, wasRequeued: true };
    case "resumed":
      return { ...view, wasRequeued: true, budget: payload.value.budget ?? view.budget };
    default:
      return view;
  }
}

type EventPayload = DelegateEvent["event"];

const MAX_INT32 = 2 ** 31 - 1;

/**
 * Converts a task's event to NEKTE's form (NEKTE 3). Returns undefined for an event that NEKTE does not have, and for a
 * preliminary result that exceeds the token budget.
 */
export function toDelegateEvent(event: TaskEvent, view: TaskView): DelegateEvent | undefined {
  const converted = payloadOf(event, view);
  return converted === undefined ? undefined : create(DelegateEventSchema, { event: converted });
}

function payloadOf(event: TaskEvent, view: TaskView): EventPayload | undefined {
  const { taskId } = view;
  const { payload } = event;
  switch (payload.case) {
    case "progress": {
      const { processed, total, message } = payload.value;
      return part({ case: "progress", value: { processed, total, ...(message === "" ? {} : { message }) } });
    }
    case "partial": {
      const { output, resolvedLevel } = payload.value;
      const fitting = fittingPartial(toPlain(output), resolvedLevel, view.budget);
      if (fitting === undefined) return undefined;
      return part({ case: "partial", value: { output: toBytes(fitting.out), resolvedLevel: fitting.level } });
    }
    case "completed":
      return complete(event, payload.value, view);
    case "failed":
    case "rejected":
    case "expired":
    case "revoked": {
      const { reason, message } = payload.value;
      const code = endCode(payload, event.verification !== undefined);
      return part({ case: "error", value: { taskId, code, message: message || reason } });
    }
    case "cancelled": {
      const { reason } = payload.value;
      const previousStatus = stateIn(view, event.previousStatus);
      return part({
        case: "cancelled",
        value: { taskId, previousStatus, ...(reason === "" ? {} : { reason }) },
      });
    }
    case "suspended": {
      const { checkpointAvailable } = payload.value;
      return part({ case: "suspended", value: { taskId, checkpointAvailable } });
    }
    case "resumed": {
      const { fromCheckpoint } = payload.value;
      return part({ case: "resumed", value: { taskId, fromCheckpoint } });
    }
    default:
      // NEKTE's stream contains only the worker's events, interruptions and the end. A dispatch is internal to the
      // platform, so the stream omits it.
      return undefined;
  }
}

function stateIn({ wasRequeued }: TaskView, status: TaskEvent["status"]): NekteState {
  return wasRequeued ? stateOnceBegun(status) : stateOf(status);
}

type Parts = NonNullable<Parameters<typeof create<typeof DelegateEventSchema>>[1]>["event"];

function part(event: Parts): EventPayload {
  return create(DelegateEventSchema, event === undefined ? {} : { event }).event;
}

/** Returns the event of a task's completion. The event contains as much detail of the result as the budget allows. */
function complete(event: TaskEvent, { output, usage }: TaskCompleted, view: TaskView): EventPayload {
  const { taskId, budget } = view;
  try {
    const levels = fittingLevels(output, budget);
    return part({
      case: "complete",
      value: {
        taskId,
        status: "completed",
        output: toMultiLevel(levels),
        meta: { ms: elapsedMs(event, view.beganMs), tokensUsed: tokensUsed(usage, levels.tokens) },
      },
    });
  } catch (thrown) {
    return toError(thrown, taskId);
  }
}

/** Returns the error for an event that ends a task without a result; undefined for any other event. */
export function refusalOfEnd({ event }: DelegateEvent): DeputeError | undefined {
  if (event.case === "cancelled") {
    return new DeputeError(ErrorReason.TASK_FAILED, "the task was cancelled", {
      metadata: { task_id: event.value.taskId, failure: "CANCELLED" },
    });
  }
  if (event.case !== "error") return undefined;
  const { code, message, taskId = "" } = event.value;
  return DeputeError.received(reasonOfEnd(code), message, { metadata: { task_id: taskId } });
}

/** Converts an exception during a stream to the stream's error event. */
export function toError(thrown: unknown, taskId: string): EventPayload {
  const { reason, message } = refusalIn(thrown);
  const publicText = reason === ErrorReason.INTERNAL ? "internal error" : message;
  return part({ case: "error", value: { taskId, code: codeOf(thrown), message: publicText } });
}

/** Returns the milliseconds from the beginning of a task to an event. */
export function elapsedMs(event: TaskEvent, beganMs: number): number {
  const atMs = event.eventTime === undefined ? beganMs : fromTimestamp(event.eventTime);
  return Math.min(Math.max(0, atMs - beganMs), MAX_INT32);
}

function toMultiLevel({ minimal, compact, full }: LevelledOutput): MultiLevelResult {
  return create(MultiLevelResultSchema, {
    ...(minimal === undefined ? {} : { minimal }),
    ...(compact === undefined ? {} : { compact: toBytes(compact) }),
    ...(full === undefined ? {} : { full: toBytes(full) }),
  });
}

const utf8 = new TextEncoder();

/** Returns the bytes of a JSON value, for a `bytes` field on gRPC. */
export function toBytes(value: JsonValue): Uint8Array<ArrayBuffer> {
  return utf8.encode(JSON.stringify(value));
}

const FIELDS = new Map(DelegateEventSchema.oneofs[0]?.fields.map((field) => [field.localName, field]));

/**
 * Returns the sequence of the event after which a stream resumes; 0 means the whole stream.
 *
 * @throws DeputeError INVALID_REQUEST
 */
export function readLastEventId(lastEventId: string | null | undefined): bigint {
  if (lastEventId === undefined || lastEventId === null || lastEventId === "") return 0n;
  if (!/^\d{1,15}$/.test(lastEventId))
    throw invalid("Last-Event-ID", "must be the id of an event of this stream");
  return BigInt(lastEventId);
}

/**
 * Converts a NEKTE event to a server-sent event. The name of the server-sent event is the name of the oneof member
 * that is set. The data is the value of this member.
 */
export function toSse({ event: { event }, sequence }: SequencedEvent): SseEvent {
  const field = FIELDS.get(event.case ?? "");
  if (field?.message === undefined || event.value === undefined) throw new Error("the event has no kind");
  const sse = { event: field.name, data: encode(field.message, event.value) };
  return sequence === undefined ? sse : { ...sse, id: String(sequence) };
}

/**
 * An event of a delegated task. `sequence` is its position in the task's log. If the stream itself failed, `sequence`
 * is absent.
 */
export interface SequencedEvent {
  readonly event: DelegateEvent;
  readonly sequence?: bigint;
}

/**
 * Yields the events of a task in NEKTE's form, after the last event that the caller has.
 *
 * @param signal aborts when the caller has disconnected
 * @param show converts an event to the form that the caller gets
 */
export async function* delegateEvents<Shown>(
  first: StartedStream["first"],
  events: StartedStream["events"],
  firstView: TaskView,
  after: bigint,
  signal: AbortSignal,
  show: (converted: SequencedEvent) => Shown,
): AsyncGenerator<Shown, void, undefined> {
  let view = firstView;
  let newest = 0n;
  try {
    for (let item = first; item.done !== true; item = await events.next()) {
      const { taskEvent: event } = item.value;
      if (event === undefined) continue;
      const converted = event.sequence <= after ? undefined : toDelegateEvent(event, view);
      view = viewAfter(event, view);
      newest = event.sequence;
      if (converted !== undefined) yield show({ event: converted, sequence: event.sequence });
    }
    // Without this refusal the stream would end without the terminal event, as if the caller had it.
    if (newest > 0n && newest < after)
      throw invalid("Last-Event-ID", `is beyond the newest event of the task, which is ${newest}`);
  } catch (thrown) {
    if (signal.aborted) return;
    yield show({ event: create(DelegateEventSchema, { event: toError(thrown, view.taskId) }) });
  } finally {
    await events.return?.();
  }
}

/** Returns the failure of a task that ended without a result; undefined for any other event. */
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

/**
 * Returns the time at which an event was recorded, in milliseconds since the Unix epoch; 0 if the event has no time.
 */
export function timeOf({ eventTime }: TaskEvent): number {
  return eventTime === undefined ? 0 : fromTimestamp(eventTime);
}
