import type { JsonValue } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import { MALFORMED, PeerFault } from "./refusal.ts";

/** A result as an endpoint gave it. */
export interface PeerResult {
  readonly output: JsonValue;
  readonly compact?: JsonValue;
  readonly minimal?: string;
  readonly tokensUsed: number;
}

/** What an endpoint tells of a task. (NEKTE 3) */
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
  /** It moved between states that the platform tells by events of its own, or an event that is not known. */
  | { readonly kind: "moved" };

/** An event with the id by which the stream can be taken up after it, where the endpoint gives one. */
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
 * An event of an endpoint's stream. Read as far as it is needed: members that are not known are passed over, as other
 * versions of NEKTE have more of them.
 *
 * @param taskId the id under which the work was handed over
 * @throws PeerFault MALFORMED, also for an event of another task
 */
export function readPeerEvent(name: string, data: JsonValue, taskId: string): PeerEvent {
  if (!isObject(data)) throw malformed(`the data of ${quoted(name)} is no object`);
  const of = data.task_id;
  if (of !== undefined && of !== null && of !== "" && of !== taskId)
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

/** A change that ends the task, or interrupts it, where the endpoint has no event of its own for that. */
function changeOf({ to, reason }: Record<string, unknown>): PeerEvent {
  const why = text(reason).slice(0, MAX_FAILURE_MESSAGE);
  if (to === "failed") return { kind: "failed", code: FAILED, message: why };
  if (to === "cancelled") return { kind: "cancelled", reason: why };
  if (to === "suspended") return { kind: "suspended", checkpointAvailable: false };
  return { kind: "moved" };
}

/** The fullest level counts as the result. A level that is null is not there: gRPC knows no absent ones. */
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

/** What was parsed is JSON. */
function json(value: unknown): JsonValue {
  return (value ?? null) as JsonValue;
}

function quoted(name: string): string {
  return `the event ${JSON.stringify(name.slice(0, 32))}`;
}

function malformed(what: string): PeerFault {
  return new PeerFault(MALFORMED, `the endpoint does not speak NEKTE: ${what}`);
}
