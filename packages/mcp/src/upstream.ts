import { AsyncLocalStorage } from "node:async_hooks";
import {
  CLIENT_CAPABILITIES_META_KEY,
  Client,
  type Implementation,
  LOG_LEVEL_META_KEY,
  type ServerCapabilities,
  type Transport,
} from "@modelcontextprotocol/client";
import { AskBridge, type BridgedConnection } from "./ask-bridge.ts";
import { AskedCalls } from "./asked-calls.ts";
import type { CallOptions, LogMessage } from "./call-options.ts";
import { Definitions } from "./definitions.ts";
import { ResourceWatch } from "./resource-watch.ts";
import { ANY_RESULT, isKnownMethod } from "./result-check.ts";
import {
  bridgedCapabilities,
  type Declared,
  missingCapability,
  shownCapabilities,
} from "./rules/client-capabilities.ts";
import type { Pinned } from "./rules/definition.ts";
import type { UpstreamConfig } from "./rules/read-config.ts";
import { carriedTask, carryTask } from "./rules/server-task.ts";
import { type Era, TASKS_EXTENSION } from "./rules/task-form.ts";
import { ServerStarts } from "./server-state.ts";
import { StdioTransport } from "./stdio-transport.ts";
import { LISTS, type ListName, Subscription } from "./subscription.ts";
import { type TaskListen, TaskListens } from "./task-listens.ts";
import { TaskProgress } from "./task-progress.ts";
import { transportTo } from "./transports.ts";
import { faultOf, isNoEra, messageOf, UpstreamError } from "./upstream-fault.ts";
import { ASKS, SHARED_CONNECTION, type UpstreamOptions } from "./upstream-options.ts";

/**
 * Maximum time in milliseconds for a server to announce its revisions. A server that does not answer counts as legacy.
 */
const PROBE_MS = 5000;
const MODES = { auto: "auto", modern: { pin: "2026-07-28" }, legacy: "legacy" } as const;
/** Maximum time in milliseconds for a server to start and to complete the handshake. */
const CONNECT_MS = 30_000;

/** The functions that receive the server's messages during one call. */
interface Receivers {
  readonly onLog: ((message: LogMessage) => void) | undefined;
  readonly ask: CallOptions["ask"];
}

interface Connection {
  readonly client: Client;
  readonly transport: Transport;
}

/**
 * One server behind the proxy. The first request starts the server or connects to it. After a lost connection,
 * the next request starts or connects again.
 */
export class Upstream {
  readonly #options: UpstreamOptions;
  /** The server's tool and prompt definitions, whose digests a rule may pin. */
  readonly definitions: Readonly<Record<Pinned, Definitions>>;
  /** The server's resources that clients watch. */
  readonly watch: ResourceWatch;
  #connection: Promise<Connection> | undefined;
  /** The client of the open connection. */
  #live: Client | undefined;
  #subscription: Subscription | undefined;
  /**
   * The receivers of the server's messages, for the request whose response stream the current code reads. A message
   * does not identify its request, but over HTTP each request has its own stream.
   */
  readonly #calls = new AsyncLocalStorage<Receivers>();
  readonly #bridge: AskBridge;
  readonly #asked: AskedCalls;
  readonly #starts: ServerStarts;
  readonly #taskProgress = new TaskProgress();
  readonly #taskListens: TaskListens;
  #closed = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#taskListens = new TaskListens(options.timers);
    this.#asked = new AskedCalls(this.isPerSession);
    this.#starts = new ServerStarts(options.clock, options.onState);
    this.#bridge = new AskBridge({
      timers: options.timers,
      timeoutMs: options.config.timeoutMs,
      isAllowed: (method) => this.#isAllowed(method),
      connect: (capabilities) => this.#sibling(capabilities),
      isPerSession: this.isPerSession,
    });
    this.watch = new ResourceWatch(async () => (await this.#connected()).client, options.timers);
    this.definitions = { tools: this.#definitionsOf("tools"), prompts: this.#definitionsOf("prompts") };
  }

  get name(): string {
    return this.#options.config.name;
  }

  /** Returns the server's description of itself. Throws UpstreamError if the server is unreachable. */
  async description(): Promise<{
    info: Implementation;
    capabilities: ServerCapabilities;
    era: Era;
    instructions?: string;
  }> {
    const { client } = await this.#connected();
    const instructions = client.getInstructions();
    return {
      // A server of revision 2026-07-28 is not required to state its name.
      info: client.getServerVersion() ?? { name: this.name, version: "0" },
      capabilities: client.getServerCapabilities() ?? {},
      era: eraOf(client),
      ...(instructions === undefined ? {} : { instructions }),
    };
  }

  /**
   * Sends a caller's request to the server. A server of an earlier revision may send a request to the caller during the
   * call. The result then requires input, as in revision 2026-07-28. Over stdio, the server's request does not identify
   * its call: see AskedCalls.
   *
   * @param owner returns the identity of the caller, the method and the arguments
   * @throws UpstreamError; UnknownState; Refusal LIMIT_EXCEEDED
   */
  async call(
    method: string,
    params: Record<string, unknown>,
    options: CallOptions,
    owner: () => string,
  ): Promise<Record<string, unknown>> {
    const { client } = await this.#connected();
    const mayAsk = this.#bridges && eraOf(client) === "legacy";
    const bridged = mayAsk ? this.#bridge.request(method, params, options, owner) : undefined;
    return (await bridged) ?? this.request(method, params, options);
  }

  /**
   * Whether the proxy opens one connection for each set of client capabilities if the server has an earlier revision.
   */
  get #bridges(): boolean {
    const { address, ask } = this.#options;
    return (
      ask === undefined &&
      (address.kind === "http" || this.isPerSession || ASKS.some((method) => this.#isAllowed(method)))
    );
  }

  /** Whether each MCP session has its own server process. */
  get isPerSession(): boolean {
    const { address, ask } = this.#options;
    return ask === undefined && address.kind === "stdio" && address.process === "session";
  }

  /** Ends the server processes that belong to an MCP session. Called when the session has ended. */
  endSession(session: string): void {
    this.#bridge.endSession(session);
  }

  /**
   * Returns the name of the connection that serves a client's calls. The name is the connection's client capabilities
   * as JSON; `{}` for the connection that all clients share.
   */
  connectionOf(declared: Declared | undefined): string {
    const isModern = this.#live !== undefined && eraOf(this.#live) === "modern";
    const isShared = isModern || !this.#bridges;
    return JSON.stringify(isShared ? {} : bridgedCapabilities(declared, (method) => this.#isAllowed(method)));
  }

  /**
   * Listens to tasks of a server of revision 2026-07-28 until the signal aborts.
   *
   * @throws UpstreamError
   */
  async listenTasks(
    taskIds: readonly string[],
    onTask: (task: Record<string, unknown>) => void,
    signal: AbortSignal,
  ): Promise<TaskListen> {
    const { transport } = await this.#connected();
    return this.#taskListens.begin(transport, taskIds, onTask, signal);
  }

  /**
   * Cancels the call that `requestState` names. A call stays open while the server waits for the client's input. Does
   * nothing if no such call is open.
   */
  abandon({ requestState }: Readonly<Record<string, unknown>>): void {
    this.#bridge.abandon(requestState);
  }

  /**
   * Sends a request to the server.
   *
   * @returns the result in the form that the protocol defines
   * @throws UpstreamError
   */
  async request(
    method: string,
    params: Record<string, unknown>,
    callOptions: CallOptions = {},
  ): Promise<Record<string, unknown>> {
    const { signal, onProgress, logs, headers, ask } = callOptions;
    const { client, transport } = await this.#connected();
    if (signal?.aborted === true) throw new UpstreamError({ kind: "unsent", detail: "the caller has left" });
    const { timeoutMs = this.#options.config.timeoutMs } = callOptions;
    const beginsTask = params.task !== undefined;
    const options = {
      timeout: timeoutMs,
      maxTotalTimeout: timeoutMs,
      allowInputRequired: true,
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined || beginsTask ? {} : { onprogress: onProgress }),
      ...(headers === undefined ? {} : { headers: { ...headers } }),
    };
    const sentParams =
      client.getProtocolEra() === "modern"
        ? this.#withEnvelope(params, callOptions)
        : this.#withProgress(params, onProgress);
    // If the SDK knows the method, it also checks the form of the result.
    const send = () =>
      isKnownMethod(method) && !beginsTask
        ? client.request({ method: method as "tools/call", params: sentParams }, options)
        : client.request({ method, params: sentParams }, ANY_RESULT, options);
    const begin = () => this.#calls.run({ onLog: logs?.onLog, ask }, send);
    const { result, sent } =
      transport instanceof StdioTransport ? transport.follow(begin) : { result: begin(), sent: undefined };
    this.#asked.add(ask);
    let isOver = true;
    try {
      return { ...carriedTask((await result) as Record<string, unknown>) };
    } catch (thrown) {
      const fault = faultOf(thrown, signal, sent);
      isOver = fault.kind !== "cancelled" && fault.kind !== "timeout";
      throw new UpstreamError(fault);
    } finally {
      this.#asked.end(ask, isOver);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.watch.end();
    this.#subscription?.end();
    await this.#bridge.close();
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.client.close();
  }

  /** Adds the calling client's capabilities and log level to the parameters. */
  #withEnvelope(
    params: Record<string, unknown>,
    { clientCapabilities, takesTasks, logs }: CallOptions,
  ): Record<string, unknown> {
    const shown = shownCapabilities(clientCapabilities, (method) => this.#isAllowed(method));
    const extensions = takesTasks === true ? { extensions: { [TASKS_EXTENSION]: {} } } : {};
    const envelope = {
      [CLIENT_CAPABILITIES_META_KEY]: { ...shown, ...extensions },
      ...(logs === undefined ? {} : { [LOG_LEVEL_META_KEY]: logs.level }),
    };
    return { ...params, _meta: { ...(params._meta as object), ...envelope } };
  }

  /**
   * Adds a progress token to a call that begins a task. A server of an earlier revision then reports the task's
   * progress.
   */
  #withProgress(
    params: Record<string, unknown>,
    onProgress: CallOptions["onProgress"],
  ): Record<string, unknown> {
    if (params.task === undefined || onProgress === undefined) return params;
    const progressToken = this.#taskProgress.begin(onProgress);
    return { ...params, _meta: { ...(params._meta as object), progressToken } };
  }

  #isAllowed(method: string): boolean {
    const { methods, passed } = this.#options.config.map;
    return methods.has(method) || passed.has(method);
  }

  /** Opens a separate connection to the server. The connection serves only calls of clients with these capabilities. */
  #sibling(capabilities: Record<string, unknown>): BridgedConnection {
    const { config, address, clock, timers, onTaskStatus } = this.#options;
    const connection = JSON.stringify(capabilities);
    const sibling = new Upstream({
      config: { ...config, revision: "legacy" },
      address,
      clock,
      timers,
      ask: () =>
        Promise.reject(new Error("the request does not belong to a call, so no client can receive it")),
      declared: () => capabilities,
      ...(onTaskStatus !== undefined && { onTaskStatus: (task) => onTaskStatus(task, connection) }),
    });
    return {
      send: (method, params, options) => sibling.request(method, params, options),
      close: () => sibling.close(),
    };
  }

  #definitionsOf(list: Pinned): Definitions {
    const { config, clock, onListChanged } = this.#options;
    return new Definitions({
      list,
      clock,
      ttlMs: config.definitionTtlMs,
      trustsPromises: config.trustPromises,
      isAnnounced: () => this.#subscription?.covers(list) === true,
      page: (cursor) => this.request(`${list}/list`, cursor === undefined ? {} : { cursor }),
      onChanged: () => onListChanged?.(list),
    });
  }

  async #connected(): Promise<Connection> {
    if (this.#closed) throw new UpstreamError({ kind: "unsent", detail: "the proxy is closing" });
    const { waitMs, failures } = this.#starts;
    if (this.#connection === undefined && waitMs > 0) {
      const detail = `the server failed ${failures} times in a row; it can start again in ${waitMs} ms: try again then`;
      throw new UpstreamError({ kind: "unsent", detail });
    }
    this.#connection ??= this.#connect();
    const connecting = this.#connection;
    try {
      return await connecting;
    } catch (thrown) {
      if (this.#connection === connecting) {
        this.#forget();
        if (!this.#closed) this.#starts.notStarted();
      }
      if (thrown instanceof UpstreamError) throw thrown;
      throw new UpstreamError({ kind: "unsent", detail: `cannot be reached: ${messageOf(thrown)}` });
    }
  }

  async #connect(): Promise<Connection> {
    const { config, address, timers } = this.#options;
    const connection = await this.#open(config.revision).catch((thrown: unknown) => {
      // A server with an old SDK may exit when the proxy asks for its revisions. The proxy then starts the server again
      // without this question.
      const mayBeOld = config.revision === "auto" && address.kind === "stdio" && isNoEra(thrown);
      if (mayBeOld) return this.#open("legacy");
      throw thrown;
    });
    const { client } = connection;
    this.#live = client;
    this.#starts.started();
    // The proxy requests messages of all levels, and filters them by the level that each client sets. A server that
    // refuses the request decides itself which messages it sends.
    if (client.getProtocolEra() !== "modern" && client.getServerCapabilities()?.logging !== undefined) {
      await client.setLoggingLevel("debug").catch(() => {});
    }
    this.#subscription = new Subscription(
      { client, timers, onGap: (list) => this.#changed(list) },
      address.kind === "stdio",
    );
    return connection;
  }

  async #open(revision: UpstreamConfig["revision"]): Promise<Connection> {
    const { config, ask, declared, address, timers } = this.#options;
    // Without `ask`, the proxy cannot forward requests of a server of an earlier revision. So the proxy declares no
    // client capabilities to this server.
    const shown =
      ask === undefined ? {} : shownCapabilities(declared?.(), (method) => this.#isAllowed(method));
    const client = new Client(
      { name: "depute-mcp-proxy", version: "0.1.0" },
      {
        capabilities: shown,
        versionNegotiation: { mode: MODES[revision], probe: { timeoutMs: PROBE_MS } },
        inputRequired: { autoFulfill: false },
      },
    );
    for (const method of ASKS) {
      if (missingCapability(method, {}, shown) !== undefined) continue;
      client.setRequestHandler(method, (async (request: { params?: unknown }) =>
        (this.#calls.getStore()?.ask ?? this.#asked.only() ?? ask)?.(method, request.params ?? {})) as never);
    }
    client.fallbackNotificationHandler = async ({ method, params }) => {
      if (method === "notifications/message") {
        const onLog = this.#calls.getStore()?.onLog ?? this.#options.onLog;
        onLog?.(params as LogMessage);
        return;
      }
      if (method === "notifications/resources/updated") {
        this.#options.onResourceChanged?.(String(params?.uri));
        return;
      }
      if (method === "notifications/tasks/status") {
        this.#options.onTaskStatus?.(params ?? {}, SHARED_CONNECTION);
        return;
      }
      const list = LISTS.find((one) => method === `notifications/${one}/list_changed`);
      if (list !== undefined) this.#changed(list);
    };
    // The next call starts the server again. If a newer connection already exists, the close of an older client must
    // not discard that connection.
    client.onclose = () => {
      if (this.#live !== client) return;
      this.#forget();
      if (!this.#closed) this.#starts.crashed();
    };
    const transport = this.#options.transport?.() ?? transportTo(address, config.maxAnswerBytes, timers);
    // A receiver that is set before the SDK's client connects gets each message first, and then the client's own
    // receiver does.
    transport.onmessage = (message) => {
      this.#taskProgress.receive(message);
      this.#taskListens.receive(message);
      carryTask(message);
    };
    await client.connect(transport, { timeout: CONNECT_MS });
    return { client, transport };
  }

  #changed(list: ListName): void {
    if (list !== "resources") this.definitions[list].forget();
    this.#options.onListChanged?.(list);
  }

  #forget(): void {
    this.#connection = undefined;
    this.#live = undefined;
    this.#taskProgress.clear();
    this.#taskListens.clear();
    this.#asked.clear();
    if (!this.#closed) this.watch.restore();
    this.#subscription?.end();
    this.#subscription = undefined;
    for (const definitions of Object.values(this.definitions)) definitions.forget();
  }
}

function eraOf(client: Client): Era {
  return client.getProtocolEra() === "modern" ? "modern" : "legacy";
}
