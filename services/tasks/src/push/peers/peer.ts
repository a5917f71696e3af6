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

/** Milliseconds for an answer that waits for no work. */
export const CALL_MS = 10_000;
/** Bytes of such an answer, or of an invocation's. */
export const MAX_ANSWER_BYTES = 4 * 1024 * 1024;
/** Bytes of a stream, of all its events. */
export const MAX_STREAM_BYTES = 64 * 1024 * 1024;

/** How endpoints are called: where an answer is waited for as long as the work takes, and otherwise. */
export interface PeerOutbound {
  readonly streams: Outbound;
  readonly calls: Outbound;
}

/** What an endpoint gave for an invocation. (NEKTE 2) */
export interface Invoked {
  readonly output: JsonValue;
  /** Empty where it does not say. */
  readonly level: string;
  readonly tokensUsed: number;
}

/**
 * A NEKTE server that an agent runs itself, over one of NEKTE's transports. Every call throws PeerFault when it does not
 * go well.
 */
export interface Peer {
  /** Waits for the result as long as `signal` lets it. */
  invoke(request: InvokeRequest, signal: AbortSignal): Promise<Invoked>;
  /**
   * Hands work over, or attaches to the same work again.
   *
   * @param after the id of the last event that was seen; undefined to begin with the first
   */
  delegate(request: DelegateRequest, after: string | undefined, signal: AbortSignal): AsyncIterable<Numbered>;
  share(request: ContextRequest, signal: AbortSignal): Promise<void>;
  cancel(request: TaskCancelRequest, signal: AbortSignal): Promise<void>;
  resume(request: TaskResumeRequest, signal: AbortSignal): Promise<void>;
  /** The state that it says the task is in. (NEKTE 6) */
  status(taskId: string, signal: AbortSignal): Promise<string>;
  close(): void;
}

/** The JSON in bytes that an endpoint sent. @throws PeerFault MALFORMED */
export function readAnswer(bytes: Uint8Array | string): JsonValue {
  const parsed = parseJson(bytes, { maxBytes: MAX_ANSWER_BYTES });
  if (!parsed.ok)
    throw new PeerFault(MALFORMED, `the endpoint does not speak NEKTE: ${parsed.error.message}`);
  return parsed.value;
}

/** The hash that the endpoint has of the capability, in a refusal of ours. */
export function currentHash(thrown: unknown): string | undefined {
  if (!(thrown instanceof PeerFault) || thrown.code !== VERSION_MISMATCH) return undefined;
  const hash = isObject(thrown.data) ? thrown.data.current_hash : undefined;
  return typeof hash === "string" ? hash : undefined;
}
