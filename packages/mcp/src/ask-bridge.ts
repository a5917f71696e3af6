import { randomUuid, type Timers } from "@depute/core";
import type { CallOptions } from "./call-options.ts";
import { argumentsDigest } from "./digest.ts";
import { HeldCall } from "./held-call.ts";
import { bridgedCapabilities } from "./rules/client-capabilities.ts";
import { INVALID_PARAMS, LIMIT_REACHED, Refusal } from "./rules/refusal.ts";

/** Maximum number of connections to one server. */
const MAX_CONNECTIONS = 64;
/** Milliseconds without a call after which the server process of one MCP session ends. */
const IDLE_MS = 1_800_000;
/** Maximum number of calls of one server that wait for their clients. */
const MAX_HELD = 1000;

type Result = Record<string, unknown>;

/**
 * Thrown if a `requestState` does not name an open call of this caller. The server has received nothing in this case.
 */
export class UnknownState extends Refusal {
  constructor() {
    const detail =
      "requestState: does not name an open call of this caller; it is valid once and for four minutes: repeat the call without it";
    super(INVALID_PARAMS, "Invalid params", { reason: "INVALID_REQUEST", detail });
  }
}

/**
 * Returns the identity of a call: its caller, method and parameters. The client's answers and `requestState` are left
 * out, because they differ in each round.
 *
 * @param caller the caller's token or MCP session
 */
export function callOwner(caller: string, method: string, params: Readonly<Record<string, unknown>>): string {
  const { _meta, inputResponses, requestState, ...own } = params;
  return JSON.stringify([caller, method, argumentsDigest(own)]);
}

/**
 * A connection to the server, for the calls of all clients that have the same capabilities. The proxy declares these
 * capabilities to the server.
 */
export interface BridgedConnection {
  send(method: string, params: Record<string, unknown>, options: CallOptions): Promise<Result>;
  close(): Promise<void>;
}

export interface AskBridgeOptions {
  readonly timers: Timers;
  /** Maximum time in milliseconds in which the server works on a call between two questions. */
  readonly timeoutMs: number;
  /** Whether the tool map allows this method for a request from the server to the client. */
  isAllowed(method: string): boolean;
  connect(capabilities: Record<string, unknown>): BridgedConnection;
  /** Whether each MCP session has its own connection, even if its client declares no capability. */
  readonly isPerSession: boolean;
}

interface OpenConnection {
  readonly connection: BridgedConnection;
  readonly session: string;
  running: number;
  cancelIdle: () => void;
}

/**
 * Lets a server of an earlier revision send requests to clients, although several clients share the server. When the
 * server sends a request during a call, the proxy returns a result that requires input. The call stays open until the
 * client repeats the call with the answers (MCP 2026-07-28, multi-round-trip requests). So the proxy serves clients of
 * both revisions in the same way. In an earlier revision, a connection declares the client's capabilities only once, at
 * its start. So the proxy opens one connection to the server for each set of client capabilities.
 */
export class AskBridge {
  readonly #options: AskBridgeOptions;
  readonly #connections = new Map<string, OpenConnection>();
  readonly #held = new Map<string, { readonly owner: string; readonly call: HeldCall }>();

  /**
   * The newest `requestState` of each call that waits for its client. Each round of questions has a new `requestState`.
   */
  readonly #handles = new WeakMap<HeldCall, string>();

  constructor(options: AskBridgeOptions) {
    this.#options = options;
  }

  /**
   * Sends a new call to the server, or continues the call that `requestState` names.
   *
   * @param owner returns the identity of the call: see callOwner
   * @returns undefined if the shared connection must serve the call: the client declared no capability that the map
   * allows, and MCP sessions have no connections of their own
   * @throws UpstreamError; UnknownState; Refusal if too many calls wait for their clients, or too many connections
   * are open
   */
  request(
    method: string,
    { requestState, inputResponses, ...params }: Record<string, unknown>,
    options: CallOptions,
    owner: () => string,
  ): Promise<Result> | undefined {
    if (requestState !== undefined) return this.#resume(requestState, inputResponses, options, owner());
    const { timers, isPerSession } = this.#options;
    const capabilities = bridgedCapabilities(options.clientCapabilities, this.#options.isAllowed);
    if (Object.keys(capabilities).length === 0 && !isPerSession) return undefined;
    const open = this.#connectionOf(capabilities, isPerSession ? (options.processOf ?? "") : "");
    this.#use(open, 1);
    const { timeoutMs = this.#options.timeoutMs } = options;
    const call = new HeldCall({
      timers,
      timeoutMs,
      send: (own) => open.connection.send(method, params, { ...options, ...own }),
      onEnd: () => {
        this.#use(open, -1);
        this.#forget(call);
      },
    });
    return this.#next(call, options, owner());
  }

  /** Cancels the call that a `requestState` names. Does nothing for any other value. */
  abandon(requestState: unknown): void {
    if (typeof requestState === "string") this.#held.get(requestState)?.call.cancel();
  }

  /** Ends the server processes of an MCP session. */
  endSession(session: string): void {
    if (session === "") return;
    for (const open of [...this.#connections.values()]) if (open.session === session) this.#drop(open);
  }

  async close(): Promise<void> {
    for (const { call } of this.#held.values()) call.cancel();
    const open = [...this.#connections.values()];
    for (const { cancelIdle } of open) cancelIdle();
    await Promise.all(open.map(({ connection }) => connection.close()));
  }

  /**
   * Adds 1 to, or subtracts 1 from, the number of running calls on a connection. An MCP session's connection closes
   * IDLE_MS after its last call.
   */
  #use(open: OpenConnection, calls: 1 | -1): void {
    open.running += calls;
    open.cancelIdle();
    const isOpen = [...this.#connections.values()].includes(open);
    if (open.running > 0 || !isOpen || !this.#options.isPerSession) return;
    open.cancelIdle = this.#options.timers.after(IDLE_MS, () => this.#drop(open));
  }

  #drop(open: OpenConnection): void {
    for (const [key, each] of this.#connections) if (each === open) this.#connections.delete(key);
    open.cancelIdle();
    open.connection.close().catch(() => {});
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
        detail: "too many calls of the server wait for their clients; try again later",
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

  /**
   * Returns the connection for these client capabilities and this MCP session. Opens the connection if there is none.
   * Throws Refusal if MAX_CONNECTIONS are open.
   */
  #connectionOf(capabilities: Record<string, unknown>, session: string): OpenConnection {
    const key = JSON.stringify([capabilities, session]);
    const known = this.#connections.get(key);
    if (known !== undefined) return known;
    if (this.#connections.size >= MAX_CONNECTIONS)
      throw new Refusal(LIMIT_REACHED, "Limit exceeded", {
        reason: "LIMIT_EXCEEDED",
        detail: "too many sessions have their own server process; try again later",
        metadata: { limit: "mcp_server_processes", max: String(MAX_CONNECTIONS) },
      });
    const connection = this.#options.connect(capabilities);
    const open = { connection, session, running: 0, cancelIdle: () => {} };
    this.#connections.set(key, open);
    return open;
  }
}
