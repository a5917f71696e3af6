import { type Clock, systemClock, systemTimers, type Timers } from "@depute/core";
import {
  Client,
  type Progress,
  type ServerCapabilities,
  type StandardSchemaV1,
  type Transport,
} from "@modelcontextprotocol/client";
import { Definitions } from "./definitions.ts";
import type { Pinned } from "./rules/definition.ts";
import type { UpstreamAddress, UpstreamConfig } from "./rules/read-config.ts";
import { StdioTransport } from "./stdio-transport.ts";
import { LISTS, type ListName, Subscription } from "./subscription.ts";
import { transportTo } from "./transports.ts";
import { faultOf, isNoEra, messageOf, UpstreamError } from "./upstream-fault.ts";

/** Time for a server to say which revisions it speaks; one that does not answer speaks an old one. */
const PROBE_MS = 5000;
/** Methods that the protocol has. Others pass when configuration says so, and have results that only their users know. */
const KNOWN = /^(tools|resources|prompts|completion|logging)\/|^ping$/;
const ANY_RESULT: StandardSchemaV1<unknown, Record<string, unknown>> = {
  "~standard": {
    version: 1,
    vendor: "depute",
    validate: (value) =>
      typeof value === "object" && value !== null
        ? { value: value as Record<string, unknown> }
        : { issues: [{ message: "not an object" }] },
  },
};
const MODES = { auto: "auto", modern: { pin: "2026-07-28" }, legacy: "legacy" } as const;
/** Time for a server to start and to shake hands. */
const CONNECT_MS = 30_000;

/** Requests by which a server asks its client for something. */
export const ASKS = ["sampling/createMessage", "elicitation/create", "roots/list"] as const;
export type Ask = (typeof ASKS)[number];

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface UpstreamOptions {
  readonly config: UpstreamConfig;
  readonly address: UpstreamAddress;
  /** Called when a list of the server changed: by its announcement, or because it was found to differ. */
  readonly onListChanged?: (list: ListName) => void;
  /** The system's time unless told otherwise. */
  readonly clock?: Clock;
  readonly timers?: Timers;
  /**
   * Puts to the client what the server asks of it; absent where several clients share the server, since a question then
   * is nobody's. What a call's result asks for (revision 2026-07-28) does not come here: it is the caller's.
   */
  readonly ask?: (method: Ask, params: unknown) => Promise<unknown>;
  /** How the server is reached, where it is not by its address: for tests. */
  readonly transport?: () => Transport;
}

interface Connection {
  readonly client: Client;
  readonly transport: Transport;
}

/** One server behind the proxy: started or connected to when it is first needed, and again after it was lost. */
export class Upstream {
  readonly #options: UpstreamOptions;
  /** The definitions of the lists whose entries are pinned. */
  readonly definitions: Readonly<Record<Pinned, Definitions>>;
  #connection: Promise<Connection> | undefined;
  /** The client of the connection that stands. */
  #live: Client | undefined;
  #subscription: Subscription | undefined;
  #closed = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.definitions = { tools: this.#definitionsOf("tools"), prompts: this.#definitionsOf("prompts") };
  }

  get name(): string {
    return this.#options.config.name;
  }

  /** What the server says of itself. Throws UpstreamError where it cannot be reached. */
  async about(): Promise<{ capabilities: ServerCapabilities; instructions?: string }> {
    const { client } = await this.#connected();
    const instructions = client.getInstructions();
    return {
      capabilities: client.getServerCapabilities() ?? {},
      ...(instructions === undefined ? {} : { instructions }),
    };
  }

  /**
   * Makes a request of the server.
   *
   * @returns its result, which has the form that the protocol wants
   * @throws UpstreamError
   */
  async request(
    method: string,
    params: Record<string, unknown>,
    { signal, onProgress }: CallOptions = {},
  ): Promise<Record<string, unknown>> {
    const { client, transport } = await this.#connected();
    if (signal?.aborted === true) throw new UpstreamError({ kind: "unsent", detail: "the caller has left" });
    const { timeoutMs } = this.#options.config;
    const options = {
      timeout: timeoutMs,
      maxTotalTimeout: timeoutMs,
      allowInputRequired: true,
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined ? {} : { onprogress: onProgress }),
    };
    // The SDK checks the form of a known method's result.
    const begin = () =>
      KNOWN.test(method)
        ? client.request({ method: method as "tools/call", params }, options)
        : client.request({ method, params }, ANY_RESULT, options);
    const { result, sent } =
      transport instanceof StdioTransport ? transport.follow(begin) : { result: begin(), sent: undefined };
    try {
      return (await result) as Record<string, unknown>;
    } catch (thrown) {
      throw new UpstreamError(faultOf(thrown, signal, sent));
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#subscription?.end();
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.client.close();
  }

  #definitionsOf(list: Pinned): Definitions {
    const { config, clock = systemClock, onListChanged } = this.#options;
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
    this.#connection ??= this.#connect();
    const connecting = this.#connection;
    try {
      return await connecting;
    } catch (thrown) {
      if (this.#connection === connecting) this.#forget();
      if (thrown instanceof UpstreamError) throw thrown;
      throw new UpstreamError({ kind: "unsent", detail: `cannot be reached: ${messageOf(thrown)}` });
    }
  }

  async #connect(): Promise<Connection> {
    const { config, address, timers = systemTimers } = this.#options;
    const connection = await this.#open(config.revision).catch((thrown: unknown) => {
      // A server of an old SDK may end where it is asked which revisions it speaks.
      const mayBeOld = config.revision === "auto" && address.kind === "stdio" && isNoEra(thrown);
      if (mayBeOld) return this.#open("legacy");
      throw thrown;
    });
    const { client } = connection;
    this.#live = client;
    this.#subscription = new Subscription(
      { client, timers, onGap: (list) => this.#changed(list) },
      address.kind === "stdio",
    );
    return connection;
  }

  async #open(revision: UpstreamConfig["revision"]): Promise<Connection> {
    const { config, ask, address } = this.#options;
    const { methods, passed } = config.map;
    const asked = ASKS.filter((method) => methods.has(method) || passed.has(method));
    const client = new Client(
      { name: "depute-mcp-proxy", version: "0.1.0" },
      {
        capabilities: capabilitiesFor(asked),
        versionNegotiation: { mode: MODES[revision], probe: { timeoutMs: PROBE_MS } },
        inputRequired: { autoFulfill: false },
      },
    );
    for (const method of ask === undefined ? [] : asked) {
      client.setRequestHandler(method, (async (request: { params?: unknown }) =>
        ask?.(method, request.params ?? {})) as never);
    }
    client.fallbackNotificationHandler = async ({ method }) => {
      const list = LISTS.find((one) => method === `notifications/${one}/list_changed`);
      if (list !== undefined) this.#changed(list);
    };
    // What was lost is started again by the next call; by then another one may be there.
    client.onclose = () => {
      if (this.#live === client) this.#forget();
    };
    const transport = this.#options.transport?.() ?? transportTo(address, config.maxAnswerBytes);
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
    this.#subscription?.end();
    this.#subscription = undefined;
    for (const definitions of Object.values(this.definitions)) definitions.forget();
  }
}

function capabilitiesFor(methods: readonly Ask[]) {
  return {
    ...(methods.includes("sampling/createMessage") ? { sampling: {} } : {}),
    ...(methods.includes("elicitation/create") ? { elicitation: { form: {} } } : {}),
    ...(methods.includes("roots/list") ? { roots: {} } : {}),
  };
}
