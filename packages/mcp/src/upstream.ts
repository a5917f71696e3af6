import {
  Client,
  type JSONRPCNotification,
  type Progress,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  type ServerCapabilities,
  type StandardSchemaV1,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { definitionDigest } from "./digest.ts";
import type { UpstreamAddress, UpstreamConfig } from "./rules/read-config.ts";

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
/** Pages of a list of tools; more than a server can mean. */
const MAX_PAGES = 64;
/** Tools of one server that definitions are held of. */
const MAX_TOOLS = 10_000;

/** Requests by which a server asks its client for something. */
export const ASKS = ["sampling/createMessage", "elicitation/create", "roots/list"] as const;
export type Ask = (typeof ASKS)[number];

/** What happened to a call that brought no result. */
export type UpstreamFault =
  /** It never reached the server. */
  | { readonly kind: "unsent"; readonly detail: string }
  /** It may have been carried out. */
  | { readonly kind: "lost" | "timeout" | "malformed" | "cancelled"; readonly detail: string }
  /** The server's own error. */
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown };

export class UpstreamError extends Error {
  override readonly name = "UpstreamError";
  readonly fault: UpstreamFault;

  constructor(fault: UpstreamFault) {
    super(fault.kind === "error" ? fault.message : fault.detail);
    this.fault = fault;
  }
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface UpstreamOptions {
  readonly config: UpstreamConfig;
  readonly address: UpstreamAddress;
  /** A notification of the server. */
  readonly onNotification?: (notification: JSONRPCNotification) => void;
  /**
   * Puts to the client what the server asks of it; absent where several clients share the server, since a question then
   * is nobody's. What a call's result asks for (revision 2026-07-28) does not come here: it is the caller's.
   */
  readonly ask?: (method: Ask, params: unknown) => Promise<unknown>;
  /** How the server is reached, where it is not by its address: for tests. */
  readonly transport?: () => Transport;
}

/** One server behind the proxy: started or connected to when it is first needed, and again after it was lost. */
export class Upstream {
  readonly #options: UpstreamOptions;
  #client: Promise<Client> | undefined;
  #definitions: Promise<Map<string, string>> | undefined;
  #closed = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.config.name;
  }

  /** What the server says of itself. Throws UpstreamError where it cannot be reached. */
  async about(): Promise<{ capabilities: ServerCapabilities; instructions?: string }> {
    const client = await this.#connected();
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
    const client = await this.#connected();
    if (signal?.aborted === true) throw new UpstreamError({ kind: "unsent", detail: "the caller has left" });
    const { timeoutMs } = this.#options.config;
    const options = {
      timeout: timeoutMs,
      maxTotalTimeout: timeoutMs,
      allowInputRequired: true,
      ...(signal === undefined ? {} : { signal }),
      ...(onProgress === undefined ? {} : { onprogress: onProgress }),
    };
    try {
      // The SDK checks the form of a known method's result.
      const result = KNOWN.test(method)
        ? await client.request({ method: method as "tools/call", params }, options)
        : await client.request({ method, params }, ANY_RESULT, options);
      return result as Record<string, unknown>;
    } catch (thrown) {
      throw new UpstreamError(faultOf(thrown, signal));
    }
  }

  /**
   * Digest of a tool's definition, as the server has it now; undefined when it has no such tool.
   *
   * @throws UpstreamError
   */
  async definition(tool: string): Promise<string | undefined> {
    this.#definitions ??= this.#listAll();
    const all = this.#definitions;
    try {
      return (await all).get(tool);
    } catch (thrown) {
      if (this.#definitions === all) this.#definitions = undefined;
      throw thrown;
    }
  }

  /** Takes note of definitions that the server listed just now. @returns their digests by name */
  async note(tools: readonly unknown[]): Promise<Map<string, string>> {
    const digests = new Map(tools.flatMap((tool) => namedDigest(tool)));
    // Only a whole list says which tools there are; a page of one says what has changed.
    const known = await this.#definitions?.catch(() => undefined);
    if (known !== undefined) for (const [name, digest] of digests) known.set(name, digest);
    return digests;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const client = await this.#client?.catch(() => undefined);
    await client?.close();
  }

  async #listAll(): Promise<Map<string, string>> {
    const all = new Map<string, string>();
    let cursor: unknown;
    for (let page = 0; page < MAX_PAGES && all.size < MAX_TOOLS; page++) {
      const result = await this.request("tools/list", cursor === undefined ? {} : { cursor });
      for (const tool of (result.tools ?? []) as unknown[]) {
        for (const [name, digest] of namedDigest(tool)) all.set(name, digest);
      }
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    return all;
  }

  async #connected(): Promise<Client> {
    if (this.#closed) throw new UpstreamError({ kind: "unsent", detail: "the proxy is closing" });
    this.#client ??= this.#connect();
    const connecting = this.#client;
    try {
      return await connecting;
    } catch (thrown) {
      this.#forget(connecting);
      if (thrown instanceof UpstreamError) throw thrown;
      throw new UpstreamError({ kind: "unsent", detail: `cannot be reached: ${messageOf(thrown)}` });
    }
  }

  async #connect(): Promise<Client> {
    const { config, ask, address, onNotification, transport } = this.#options;
    const { methods, passed } = config.map;
    const asked = ASKS.filter((method) => methods.has(method) || passed.has(method));
    const client = new Client(
      { name: "depute-mcp-proxy", version: "0.1.0" },
      {
        capabilities: capabilitiesFor(asked),
        versionNegotiation: { mode: MODES[config.revision], probe: { timeoutMs: PROBE_MS } },
        inputRequired: { autoFulfill: false },
      },
    );
    for (const method of ask === undefined ? [] : asked) {
      client.setRequestHandler(method, (async (request: { params?: unknown }) =>
        ask?.(method, request.params ?? {})) as never);
    }
    client.fallbackNotificationHandler = async (notification) => {
      if (notification.method === "notifications/tools/list_changed") this.#definitions = undefined;
      onNotification?.(notification as JSONRPCNotification);
    };
    let own: Promise<Client> | undefined;
    // What was lost is started again by the next call; by then another one may be there.
    client.onclose = () => this.#forget(own);
    const connected = client.connect(transport?.() ?? transportTo(address), { timeout: CONNECT_MS });
    // The caller has put it there by the time that anything is awaited.
    await Promise.resolve();
    own = this.#client;
    await connected;
    return client;
  }

  #forget(client: Promise<Client> | undefined): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#definitions = undefined;
  }
}

function transportTo(address: UpstreamAddress): Transport {
  if (address.kind === "stdio") {
    const { command, args, env, cwd } = address;
    return new StdioClientTransport({
      command,
      args: [...args],
      // The proxy's own environment holds secrets that are no business of the server's.
      env: { ...getDefaultEnvironment(), ...env },
      stderr: "inherit",
      ...(cwd === undefined ? {} : { cwd }),
    });
  }
  const { origin } = new URL(address.url);
  return new StreamableHTTPClientTransport(new URL(address.url), {
    requestInit: { headers: { ...address.headers }, redirect: "error" },
    fetch: (input, init) => {
      const target = new URL(input instanceof Request ? input.url : input);
      // Whatever the server says, nothing is sent anywhere else than configuration allows.
      if (target.origin !== origin) throw new Error(`no request to ${target.origin}: it is not configured`);
      return fetch(input, { ...init, redirect: "error" });
    },
  });
}

function capabilitiesFor(methods: readonly Ask[]) {
  return {
    ...(methods.includes("sampling/createMessage") ? { sampling: {} } : {}),
    ...(methods.includes("elicitation/create") ? { elicitation: { form: {} } } : {}),
    ...(methods.includes("roots/list") ? { roots: {} } : {}),
  };
}

function namedDigest(tool: unknown): [string, string][] {
  const { name } = (tool ?? {}) as { name?: unknown };
  if (typeof name !== "string") return [];
  try {
    return [[name, definitionDigest(tool as Record<string, unknown>)]];
  } catch {
    // A definition that has no canonical form has no digest, so that the tool cannot be called.
    return [];
  }
}

function faultOf(thrown: unknown, signal: AbortSignal | undefined): UpstreamFault {
  if (thrown instanceof ProtocolError) {
    const { code, message, data } = thrown;
    return { kind: "error", code, message, data };
  }
  const detail = messageOf(thrown);
  if (signal?.aborted === true) return { kind: "cancelled", detail: "the caller cancelled the request" };
  if (!(thrown instanceof SdkError)) return { kind: "lost", detail };
  switch (thrown.code) {
    case SdkErrorCode.RequestTimeout:
      return { kind: "timeout", detail };
    case SdkErrorCode.InvalidResult:
    case SdkErrorCode.UnsupportedResultType:
      return { kind: "malformed", detail: detail.slice(0, 256) };
    case SdkErrorCode.NotConnected:
    case SdkErrorCode.MethodNotSupportedByProtocolVersion:
    case SdkErrorCode.CapabilityNotSupported:
      return { kind: "unsent", detail };
    default:
      return { kind: "lost", detail };
  }
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
