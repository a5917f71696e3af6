import { create, type JsonValue } from "@bufbuild/protobuf";
import type { TaskCompleted, TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type DelegateEvent,
  DelegateEventSchema,
  type MultiLevelResult,
  MultiLevelResultSchema,
  type TokenBudget,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { DeputeError, ErrorReason, fromTimestamp, invalid } from "@depute/core";
import { encode } from "@depute/wire";
import { refusalIn } from "../../src/fault.ts";
import type { SseEvent } from "../../src/sse.ts";
import { fittingLevels, fittingPartial, type LevelledOutput, tokensUsed, toPlain } from "./budget.ts";
import { codeOf, endCode, reasonOfEnd } from "./errors.ts";
import { type NekteState, stateOf, stateOnceBegun } from "./states.ts";

/** What a task's events are told with. */
export interface TaskView {
  /** The caller's own id for the task. */
  readonly taskId: string;
  readonly budget: TokenBudget | undefined;
  /** Epoch ms of the task's first event. */
  readonly beganMs: number;
  /** Whether it has waited for a worker again before this event. */
  readonly wentBack: boolean;
}

/** The view of the events that follow this one. */
export function viewAfter({ payload }: TaskEvent, view: TaskView): TaskView {
  switch (payload.case) {
    case "requeued":
    case "changesRequested":
      return { ...view, wentBack: true };
    case "resumed":
      return { ...view, wentBack: true, budget: payload.value.budget ?? view.budget };
    default:
      return view;
  }
}

type Told = DelegateEvent["event"];

const MAX_INT32 = 2 ** 31 - 1;

/**
 * An event of a task as NEKTE tells it (NEKTE 3); undefined for one that a NEKTE client would see nothing of.
 */
export function toDelegateEvent(event: TaskEvent, view: TaskView): DelegateEvent | undefined {
  const told = tell(event, view);
  return told === undefined ? undefined : create(DelegateEventSchema, { event: told });
}

function tell(event: TaskEvent, view: TaskView): Told | undefined {
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
      // The text's stream holds what the worker tells, interruptions and the end: how a worker is found concerns nobody else.
      return undefined;
  }
}

function stateIn({ wentBack }: TaskView, status: TaskEvent["status"]): NekteState {
  return wentBack ? stateOnceBegun(status) : stateOf(status);
}

type Parts = NonNullable<Parameters<typeof create<typeof DelegateEventSchema>>[1]>["event"];

function part(event: Parts): Told {
  return create(DelegateEventSchema, event === undefined ? {} : { event }).event;
}

/** The end of a task with its result, in as much detail as its budget allows. */
function complete(event: TaskEvent, { output, usage }: TaskCompleted, view: TaskView): Told {
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

/** The refusal that an event without a result stands for; undefined for an event that ends nothing. */
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

/** The event that tells of a fault in mid stream. */
export function toError(thrown: unknown, taskId: string): Told {
  const { reason, message } = refusalIn(thrown);
  const told = reason === ErrorReason.INTERNAL ? "internal error" : message;
  return part({ case: "error", value: { taskId, code: codeOf(thrown), message: told } });
}

/** Milliseconds from a task's begin to an event. */
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

/** A JSON value as the bytes that hold it on gRPC. */
export function toBytes(value: JsonValue): Uint8Array<ArrayBuffer> {
  return utf8.encode(JSON.stringify(value));
}

const FIELDS = new Map(DelegateEventSchema.oneofs[0]?.fields.map((field) => [field.localName, field]));

/** The sequence after which a stream is taken up again; 0 for all of it. @throws DeputeError INVALID_REQUEST */
export function readLastEventId(lastEventId: string | null | undefined): bigint {
  if (lastEventId === undefined || lastEventId === null || lastEventId === "") return 0n;
  if (!/^\d{1,15}$/.test(lastEventId)) throw invalid("Last-Event-ID", "is not an id of this stream");
  return BigInt(lastEventId);
}

/** A NEKTE event as a server-sent one: its name is the oneof member's, its data the member. */
export function toSse({ event }: DelegateEvent, sequence: bigint | undefined): SseEvent {
  const field = FIELDS.get(event.case ?? "");
  if (field?.message === undefined || event.value === undefined) throw new Error("an event of no kind");
  const sse = { event: field.name, data: encode(field.message, event.value) };
  return sequence === undefined ? sse : { ...sse, id: String(sequence) };
}
