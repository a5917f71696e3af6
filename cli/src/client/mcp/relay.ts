import { type Answer, type ExchangeOptions, exchange, type Message } from "./exchange.ts";
import { RepeatedHeaders, revisionIn } from "./headers.ts";

/** Maximum number of concurrent requests. */
const MAX_RUNNING = 256;
/** The JSON-RPC error code for headers that contradict the body of their request. (MCP 2026-07-28) */
const HEADER_MISMATCH = -32020;
const INTERNAL_ERROR = -32603;
const PARSE_ERROR = -32700;

export interface RelayOptions extends Pick<ExchangeOptions, "url" | "tls"> {
  /** Returns the headers with the caller's credentials for one request. */
  credentials(
    method: ExchangeOptions["method"],
    message: Message | undefined,
  ): Promise<Record<string, string>>;
  /** Sends a message to the client. */
  write(message: Message): void;
  /** Called for a fault that belongs to no request of the client. */
  onFault(thrown: unknown): void;
}

/**
 * Relays the messages of one client over stdio to an MCP server over HTTP, in all revisions. In revisions with MCP
 * sessions, if the server has lost the MCP session, the relay begins a new one. A client over stdio cannot do that.
 */
export class StdioRelay {
  readonly #options: RelayOptions;
  readonly #headers = new RepeatedHeaders();
  readonly #running = new Map<unknown, AbortController>();
  /**
   * The running requests that end without an action of the client. Streams of `subscriptions/listen` are not among
   * them.
   */
  readonly #answers = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  /**
   * Settles when the server has received all messages that must precede the next message: notifications, answers, and
   * the handshake.
   */
  #before: Promise<unknown> = Promise.resolve();
  #session: string | undefined;
  #revision: string | undefined;
  #handshake: Message | undefined;
  #stream: AbortController | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
  }

  /** Relays one line from the client. Never throws. */
  receive(line: string): void {
    let message: Message;
    try {
      message = JSON.parse(line) as Message;
      if (typeof message !== "object" || message === null || Array.isArray(message)) throw new TypeError();
    } catch {
      const error = { code: PARSE_ERROR, message: "each line must be one JSON-RPC message" };
      this.#options.write({ jsonrpc: "2.0", id: null, error });
      return;
    }
    if (message.method === undefined || message.id === undefined) this.#tell(message);
    else this.#ask(message);
  }

  /**
   * Ends the MCP session. Aborts the requests that still run after `drainMs`.
   *
   * @param drainMs maximum wait for running requests, in milliseconds
   */
  async close(drainMs: number): Promise<void> {
    const { promise: waited, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, drainMs);
    await Promise.race([waited, Promise.all([this.#before, ...this.#answers])]);
    clearTimeout(timer);
    this.#closing.abort();
    if (this.#session === undefined) return;
    const signal = AbortSignal.timeout(1000);
    await this.#send("DELETE", undefined, signal).catch(() => {});
  }

  /** Relays a notification of the client, or the client's answer to a request of the server. */
  #tell(message: Message): void {
    const { requestId } = (message.params ?? {}) as { requestId?: unknown };
    const isCancel = message.method === "notifications/cancelled";
    // From revision 2026-07-28 on, a client over HTTP closes a request's stream to cancel the request.
    if (isCancel && this.#session === undefined && this.#revision === undefined) {
      this.#running.get(requestId)?.abort();
      return;
    }
    const before = this.#before;
    this.#before = before
      .then(() => this.#send("POST", message, this.#closing.signal))
      .then(() => {
        if (message.method === "notifications/initialized") this.#listen();
      })
      .catch((thrown: unknown) => this.#fault(thrown));
  }

  #ask(message: Message): void {
    const { id } = message;
    if (this.#running.size >= MAX_RUNNING) {
      this.#refuse(id, `more than ${MAX_RUNNING} requests run; wait for their answers`);
      return;
    }
    const leaving = new AbortController();
    this.#running.set(id, leaving);
    const signal = AbortSignal.any([leaving.signal, this.#closing.signal]);
    const done = this.#before
      .then(() => this.#answer(message, signal))
      .catch((thrown: unknown) => {
        if (!signal.aborted) this.#refuse(id, thrown instanceof Error ? thrown.message : String(thrown));
      })
      .finally(() => {
        this.#running.delete(id);
        this.#answers.delete(done);
      });
    if (message.method !== "subscriptions/listen") this.#answers.add(done);
    if (message.method === "initialize") this.#before = done;
  }

  /** Sends a request to the server, and writes all messages of the response to the client. */
  async #answer(message: Message, signal: AbortSignal): Promise<void> {
    const answer = await this.#send("POST", message, signal);
    if (answer.status === 404 && this.#session !== undefined) {
      await this.#reopen(signal);
      return this.#write(message, await this.#send("POST", message, signal), signal);
    }
    return this.#write(message, answer, signal);
  }

  async #write(message: Message, answer: Answer, signal: AbortSignal, isRepeated = false): Promise<void> {
    let isAnswered = false;
    for await (const received of answer.hasMessages ? answer.messages() : []) {
      if (signal.aborted) return;
      const isAnswer = received.method === undefined && received.id === message.id;
      isAnswered ||= isAnswer;
      const { code } = (received.error ?? {}) as { code?: unknown };
      if (isAnswer && code === HEADER_MISMATCH && message.method === "tools/call" && !isRepeated) {
        await this.#readTools(message, signal);
        return this.#write(message, await this.#send("POST", message, signal), signal, true);
      }
      if (isAnswer && message.method === "initialize") this.#opened(message, received, answer);
      if (isAnswer && message.method === "tools/list") this.#headers.note(received);
      this.#options.write(received.id === null ? { ...received, id: message.id } : received);
      isAnswered ||= received.id === null;
    }
    if (!isAnswered && !signal.aborted)
      this.#refuse(
        message.id,
        `the platform answered with HTTP status ${answer.status} and no result; see its log`,
      );
  }

  #opened(message: Message, { result }: Message, answer: Answer): void {
    const { protocolVersion } = (result ?? {}) as { protocolVersion?: unknown };
    if (typeof protocolVersion === "string") this.#revision = protocolVersion;
    this.#session = answer.header("mcp-session-id");
    this.#handshake = message;
  }

  /**
   * Repeats the client's handshake to begin a new MCP session. A server loses its MCP sessions, for example, when the
   * server's configuration changes.
   */
  async #reopen(signal: AbortSignal): Promise<void> {
    const message = this.#handshake;
    if (message === undefined) return;
    this.#session = undefined;
    const answer = await this.#send("POST", message, signal);
    for await (const received of answer.hasMessages ? answer.messages() : [])
      if (received.method === undefined) this.#opened(message, received, answer);
    await this.#send("POST", { jsonrpc: "2.0", method: "notifications/initialized" }, signal);
    this.#listen();
  }

  /**
   * Reads the declarations of the server's tools again, because the headers of a call contradicted the declaration of
   * the called tool.
   */
  async #readTools({ params }: Message, signal: AbortSignal): Promise<void> {
    const { _meta } = (params ?? {}) as { _meta?: unknown };
    const list = { jsonrpc: "2.0", id: "depute-headers", method: "tools/list", params: { _meta } };
    const answer = await this.#send("POST", list, signal);
    for await (const received of answer.hasMessages ? answer.messages() : []) this.#headers.note(received);
  }

  /** Opens the MCP session's stream for messages that belong to no request. Does nothing without an MCP session. */
  #listen(): void {
    if (this.#session === undefined) return;
    this.#stream?.abort();
    const stream = new AbortController();
    this.#stream = stream;
    const signal = AbortSignal.any([stream.signal, this.#closing.signal]);
    const read = async () => {
      const answer = await this.#send("GET", undefined, signal);
      // If the server has no such stream, it answers with 405.
      if (answer.status !== 200) return;
      for await (const received of answer.messages()) this.#options.write(received);
    };
    read().catch((thrown: unknown) => {
      if (!signal.aborted) this.#fault(thrown);
    });
  }

  async #send(
    method: ExchangeOptions["method"],
    message: Message | undefined,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { url, tls, credentials } = this.#options;
    const revision = message === undefined ? undefined : revisionIn(message);
    const ofSession = {
      ...(this.#session !== undefined && { "mcp-session-id": this.#session }),
      ...(this.#revision !== undefined && { "mcp-protocol-version": this.#revision }),
    };
    const isHandshake = message?.method === "initialize";
    const headers = {
      accept: "application/json, text/event-stream",
      ...(message !== undefined && { "content-type": "application/json" }),
      ...(revision === undefined || message === undefined
        ? !isHandshake && ofSession
        : this.#headers.of(message, revision)),
      ...(await credentials(method, message)),
    };
    const body = message === undefined ? {} : { body: JSON.stringify(message) };
    return exchange({ url, method, headers, tls, signal, ...body });
  }

  #refuse(id: unknown, detail: string): void {
    const error = { code: INTERNAL_ERROR, message: detail, data: { reason: "DEPENDENCY_UNAVAILABLE" } };
    this.#options.write({ jsonrpc: "2.0", id, error });
  }

  #fault(thrown: unknown): void {
    if (!this.#closing.signal.aborted) this.#options.onFault(thrown);
  }
}
