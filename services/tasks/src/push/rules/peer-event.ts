import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import { MALFORMED, PeerFault } from "./refusal.ts";

/** The result that an endpoint sent. */
export interface PeerResult {
  readonly output: JsonValue;
  readonly compact?: JsonValue;
  readonly minimal?: string;
  readonly tokensUsed: number;
}

/** An event that an endpoint sent about a task. (NEKTE 3) */
export type PeerEvent =
  | {
      readonly kind: "progress";
      readonly processed: number;
      readonly total: number;
      readonly message: string;
    }
  | { readonly kind: "partial"; readonly output: JsonValue; readonly level: "minimal" | "compact" | "full" }
  | { readonly kind: "complete"; readonly result: PeerResult }
  | { readonly kind: "failed"; readonly code: number; readonly message: string }
  | { readonly kind: "cancelled"; readonly reason: string }
  | { readonly kind: "suspended"; readonly checkpointAvailable: boolean }
  /** An unknown event, or a state change that the platform need not process. */
  | { readonly kind: "moved" };

/** An event, with the id from which the stream can resume if the endpoint sends ids. */
export interface Numbered {
  readonly event: PeerEvent;
  readonly id: string | undefined;
}

const MAX_INT32 = 2 ** 31 - 1;
const MAX_PROGRESS_MESSAGE = 1000;
const MAX_FAILURE_MESSAGE = 2000;
const MAX_MINIMAL = 2000;
const FAILED = -32007;

/**
 * Reads an event of an endpoint's stream. Ignores unknown members, because other versions of NEKTE may add members.
 *
 * @param taskId the id of the task at the endpoint
 * @throws PeerFault ENDPOINT_MALFORMED, also for an event of another task
 */
export function readPeerEvent(name: string, data: JsonValue, taskId: string): PeerEvent {
  if (!isObject(data)) throw malformed(`the data of ${quoted(name)} is not an object`);
  const reportedTaskId = data.task_id;
  if (
    reportedTaskId !== undefined &&
    reportedTaskId !== null &&
    reportedTaskId !== "" &&
    reportedTaskId !== taskId
  )
    throw malformed(`${quoted(name)} is about another task`);
  switch (name) {
    case "progress":
      return {
        kind: "progress",
        processed: count(data.processed),
        total: count(data.total),
        message: text(data.message).slice(0, MAX_PROGRESS_MESSAGE),
      };
    case "partial":
      return { kind: "partial", output: json(data.out), level: levelOf(data.resolved_level) };
    case "complete":
      return { kind: "complete", result: resultOf(data) };
    case "error":
      return {
        kind: "failed",
        code: Number.isSafeInteger(data.code) ? Number(data.code) : FAILED,
        message: text(data.message).slice(0, MAX_FAILURE_MESSAGE),
      };
    case "cancelled":
      return { kind: "cancelled", reason: text(data.reason).slice(0, MAX_FAILURE_MESSAGE) };
    case "suspended":
      return { kind: "suspended", checkpointAvailable: data.checkpoint_available === true };
    case "status_change":
      return changeOf(data);
    default:
      return { kind: "moved" };
  }
}

/** Converts a state change to an event. A change that neither ends nor interrupts the task becomes `moved`. */
function changeOf({ to, reason }: Record<string, unknown>): PeerEvent {
  const why = text(reason).slice(0, MAX_FAILURE_MESSAGE);
  if (to === "failed") return { kind: "failed", code: FAILED, message: why };
  if (to === "cancelled") return { kind: "cancelled", reason: why };
  if (to === "suspended") return { kind: "suspended", checkpointAvailable: false };
  return { kind: "moved" };
}

/**
 * Returns the result at its most detailed level. A null level counts as absent. NEKTE's proto has no field
 * presence, so a gRPC server sends null for a level that it lacks.
 */
function resultOf({ out, meta }: Record<string, unknown>): PeerResult {
  if (!isObject(out)) throw malformed("the result has no levels");
  const { full = null, compact = null, minimal = null } = out;
  const tokensUsed = isObject(meta) ? count(meta.tokens_used) : 0;
  const line = typeof minimal === "string" && minimal !== "" ? minimal.slice(0, MAX_MINIMAL) : undefined;
  return {
    output: json(full ?? compact ?? minimal),
    ...(full !== null && compact !== null ? { compact: json(compact) } : {}),
    ...(line === undefined ? {} : { minimal: line }),
    tokensUsed,
  };
}

function levelOf(level: unknown): "minimal" | "compact" | "full" {
  return level === "minimal" || level === "full" ? level : "compact";
}

function count(value: unknown): number {
  return Number.isInteger(value) ? Math.min(Math.max(0, Number(value)), MAX_INT32) : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Casts a value to JSON. The value comes from a JSON parser, so the cast is safe. */
function json(value: unknown): JsonValue {
  return (value ?? null) as JsonValue;
}

function quoted(name: string): string {
  return `the event ${JSON.stringify(name.slice(0, 32))}`;
}

function malformed(problem: string): PeerFault {
  return new PeerFault(MALFORMED, `the endpoint does not conform to NEKTE: ${problem}`);
}
