import { randomUuid, type Timers } from "@depute/core";
import type { CallOptions } from "./call-options.ts";
import { argumentsDigest } from "./digest.ts";
import { HeldCall } from "./held-call.ts";
import { bridgedCapabilities } from "./rules/client-capabilities.ts";
import { INVALID_PARAMS, LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/** Maximum number of calls of one server that wait for their clients. */
const MAX_HELD = 1000;

type Result = Record<string, unknown>;

/** Thrown for a `requestState` that names no call of this caller. No request was sent to the server. */
export class UnknownState extends Refusal {
  constructor() {
    const detail =
      "requestState: names no open call of this caller; it counts once and for four minutes: call anew";
    super(INVALID_PARAMS, "Invalid params", { reason: "INVALID_REQUEST", detail });
  }
}

/**
 * Returns the identity of a call: its caller, method and parameters. Answers and `requestState` are left out, because
 * they differ in each round.
 *
 * @param caller the caller's token or session
 */
export function callOwner(caller: string, method: string, params: Readonly<Record<string, unknown>>): string {
  const { _meta, inputResponses, requestState, ...own } = params;
  return JSON.stringify([caller, method, argumentsDigest(own)]);
}

/** A connection to the server that shows it one set of client capabilities. */
export interface BridgedConnection {
  send(method: string, params: Record<string, unknown>, options: CallOptions): Promise<Result>;
  close(): Promise<void>;
}

export interface AskBridgeOptions {
  readonly timers: Timers;
  /** Maximum time in milliseconds in which the server works on a call between two questions. */
  readonly timeoutMs: number;
  /** Whether the tool map allows a request of the server. */
  isAllowed(method: string): boolean;
  connect(capabilities: Record<string, unknown>): BridgedConnection;
}

/**
 * Lets a server of an earlier revision send requests to the clients that share the server. A request of the
 * server during a call becomes a result that requires input. The call stays open until the client repeats it
 * with the answers (MCP 2026-07-28, multi-round-trip requests). So clients of both revisions are served alike.
 *
 * The proxy connects to the server once for each set of client capabilities, because a session of an earlier
 * revision has one set.
 */
export class AskBridge {
  readonly #options: AskBridgeOptions;
  readonly #connections = new Map<string, BridgedConnection>();
  readonly #held = new Map<string, { readonly owner: string; readonly call: HeldCall }>();

  /** The newest `requestState` of each held call. A call gets a new one for each round of questions. */
  readonly #handles = new WeakMap<HeldCall, string>();

  constructor(options: AskBridgeOptions) {
    this.#options = options;
  }

  /**
   * Sends a call to the server, or continues one.
   *
   * @param owner returns the identity of the call: see callOwner
   * @returns undefined if the caller declared no capability that the map allows
   * @throws UpstreamError; UnknownState
   */
  request(
    method: string,
    { requestState, inputResponses, ...params }: Record<string, unknown>,
    options: CallOptions,
    owner: () => string,
  ): Promise<Result> | undefined {
    if (requestState !== undefined) return this.#resume(requestState, inputResponses, options, owner());
    const capabilities = bridgedCapabilities(options.clientCapabilities, this.#options.isAllowed);
    if (Object.keys(capabilities).length === 0) return undefined;
    const connection = this.#connectionOf(capabilities);
    const { timers } = this.#options;
    const { timeoutMs = this.#options.timeoutMs } = options;
    const call = new HeldCall({
      timers,
      timeoutMs,
      send: (own) => connection.send(method, params, { ...options, ...own }),
      onEnd: () => this.#forget(call),
    });
    return this.#next(call, options, owner());
  }

  /** Cancels the call that a `requestState` names. Does nothing for any other value. */
  abandon(requestState: unknown): void {
    if (typeof requestState === "string") this.#held.get(requestState)?.call.cancel();
  }

  async close(): Promise<void> {
    for (const { call } of this.#held.values()) call.cancel();
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  async #resume(
    requestState: unknown,
    inputResponses: unknown,
    options: CallOptions,
    owner: string,
  ): Promise<Result> {
    const held = typeof requestState === "string" ? this.#held.get(requestState) : undefined;
    if (held === undefined || held.owner !== owner) throw new UnknownState();
    this.#held.delete(requestState as string);
    held.call.answer(inputResponses);
    return this.#next(held.call, options, owner);
  }

  async #next(call: HeldCall, { signal }: CallOptions, owner: string): Promise<Result> {
    const result = await call.next(signal);
    if (result !== undefined) return result;
    if (this.#held.size >= MAX_HELD) {
      call.cancel();
      throw new Refusal(LIMIT_REACHED, "Limit exceeded", {
        reason: "LIMIT_EXCEEDED",
        detail: "too many calls of the server wait for their clients",
        metadata: { limit: "held_calls", max: String(MAX_HELD) },
      });
    }
    const handle = randomUuid();
    this.#handles.set(call, handle);
    this.#held.set(handle, { owner, call });
    return { resultType: "input_required", inputRequests: call.inputRequests, requestState: handle };
  }

  #forget(call: HeldCall): void {
    this.#held.delete(this.#handles.get(call) ?? "");
  }

  #connectionOf(capabilities: Record<string, unknown>): BridgedConnection {
    const key = JSON.stringify(capabilities);
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    const connection = this.#options.connect(capabilities);
    this.#connections.set(key, connection);
    return connection;
  }
}
