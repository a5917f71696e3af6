import type { JsonValue } from "@bufbuild/protobuf";
import type {
  ContextRequest,
  DelegateRequest,
  InvokeRequest,
  TaskCancelRequest,
  TaskResumeRequest,
} from "@depute/contracts/nekte/v1/nekte_pb";
import { isObject } from "@depute/core";
import type { Outbound } from "@depute/service";
import { parseJson } from "@depute/wire";
import type { Numbered } from "../rules/peer-event.ts";
import { MALFORMED, PeerFault, VERSION_MISMATCH } from "../rules/refusal.ts";

/** Timeout of a call that an endpoint answers without doing the work, in milliseconds. */
export const CALL_MS = 10_000;
/** Maximum size of a response that is not a stream, in bytes. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Maximum total size of a stream's events in bytes. */
export const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** The two pools of outbound connections: one for calls that last as long as the work, one for all other calls. */
export interface PeerOutbound {
  readonly streams: Outbound;
  readonly calls: Outbound;
}

/** The result of an invocation. (NEKTE 2) */
export interface Invoked {
  readonly output: JsonValue;
  /** The level of detail of the result; empty if the endpoint does not state it. */
  readonly level: string;
  readonly tokensUsed: number;
}

/** A NEKTE server that an agent operates, over any of NEKTE's transports. A call that fails throws PeerFault. */
export interface Peer {
  /** Invokes a capability, and waits for its result until `signal` aborts. */
  invoke(request: InvokeRequest, signal: AbortSignal): Promise<Invoked>;
  /**
   * Delegates a task. If the endpoint already has the task, attaches to it.
   *
   * @param after the id of the last received event; undefined to start with the first event
   */
  delegate(request: DelegateRequest, after: string | undefined, signal: AbortSignal): AsyncIterable<Numbered>;
  share(request: ContextRequest, signal: AbortSignal): Promise<void>;
  cancel(request: TaskCancelRequest, signal: AbortSignal): Promise<void>;
  resume(request: TaskResumeRequest, signal: AbortSignal): Promise<void>;
  /** Returns the state of a task as the endpoint reports it. (NEKTE 6) */
  status(taskId: string, signal: AbortSignal): Promise<string>;
  close(): void;
}

/**
 * Parses the JSON that an endpoint sent.
 *
 * @throws PeerFault ENDPOINT_MALFORMED
 */
export function readAnswer(bytes: Uint8Array | string): JsonValue {
  const parsed = parseJson(bytes, { maxBytes: MAX_ANSWER_BYTES });
  if (!parsed.ok)
    throw new PeerFault(MALFORMED, `the endpoint does not conform to NEKTE: ${parsed.error.message}`);
  return parsed.value;
}

/** Returns the endpoint's current version hash of a capability, if the endpoint refused the hash in the call. */
export function currentHash(thrown: unknown): string | undefined {
  if (!(thrown instanceof PeerFault) || thrown.code !== VERSION_MISMATCH) return undefined;
  const hash = isObject(thrown.data) ? thrown.data.current_hash : undefined;
  return typeof hash === "string" ? hash : undefined;
}
