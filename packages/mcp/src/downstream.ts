import { isObject, randomUuid } from "@depute/core";
import {
  type AuthInfo,
  fromJsonSchema,
  type JSONRPCRequest,
  LOG_LEVEL_META_KEY,
  type McpServerFactory,
  PROTOCOL_VERSION_META_KEY,
  Server,
  type ServerCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { inRequest, REQUEST_ID_META } from "./current-request.ts";
import type { Presentation } from "./presentation.ts";
import type { McpProxy } from "./proxy.ts";
import type { ProxyRequest } from "./proxy-request.ts";
import type { AskedClient } from "./rounds.ts";
import { type Declared, declaredIn } from "./rules/client-capabilities.ts";
import { TOOLS_CALL } from "./rules/methods.ts";
import {
  HEADER_MISMATCH,
  INTERNAL_ERROR,
  METHOD_NOT_FOUND,
  MISSING_CAPABILITY,
  Refusal,
} from "./rules/refusal.ts";
import { shownTaskCapabilities, TASK_METHODS } from "./rules/server-task.ts";
import type { Era } from "./rules/task-form.ts";
import { WatchedResources } from "./watched-resources.ts";

/** Timeout in milliseconds of a server's request to the client. It is long, because a person may have to decide. */
const ASK_MS = 600_000;

/** Options of the proxy's connection to its client: an SDK server that passes every request to the proxy. */
export interface DownstreamOptions {
  readonly proxy: McpProxy;
  /**
   * Returns the token for a request whose parameters contain no `_delegateos`; undefined if there is none.
   *
   * @param attached the presentation that `withPresentation` attached to the request
   */
  readonly presentation: (attached: Presentation | undefined) => Presentation | undefined;
  /** The name of the request's connection or MCP session; absent if there is none. */
  readonly session?: string;
  /**
   * The subscriptions of each MCP session, by the server that serves the session. The proxy can then notify a session
   * of changed resources. Absent in revision 2026-07-28, whose clients subscribe by another method.
   */
  readonly watchers?: Map<Server, WatchedResources>;
  /** The MCP era of the clients: `modern` from revision 2026-07-28 on, otherwise `legacy`. */
  readonly era: Era;
  /** Whether clients of revision 2026-07-28 can listen to single resources. Default: whether `watchers` is present. */
  readonly listens?: boolean;
  /** Receives faults that no response reports. */
  readonly onError: (error: Error) => void;
  /**
   * Whether the proxy adds a request id to the result or the error of each tool call. Absent over HTTP, because a
   * response header contains the id.
   */
  readonly tellsRequestIds?: boolean;
}

/**
 * Creates a server for one connection, MCP session or request. Throws UpstreamError if the server behind the proxy
 * cannot be reached.
 */
export async function downstream({
  proxy,
  presentation,
  session,
  watchers,
  era,
  listens = watchers !== undefined,
  onError,
  tellsRequestIds = false,
}: DownstreamOptions): Promise<Server> {
  const { info, capabilities, instructions, era: own } = await proxy.upstream.description();
  const server = new Server(info, {
    capabilities: {
      ...capabilitiesOf(capabilities, listens),
      ...(own === era ? shownTaskCapabilities(era, capabilities) : undefined),
    },
    ...(instructions === undefined ? {} : { instructions }),
  });
  server.onerror = onError;
  const notify = (uri: string) =>
    server.notification({ method: "notifications/resources/updated", params: { uri } });
  const watched = watchers === undefined ? undefined : watchedResources(proxy, notify, onError);
  if (watched !== undefined) watchers?.set(server, watched);
  const notifyTask = (task: Record<string, unknown>) => {
    server.notification({ method: "notifications/tasks/status", params: task }).catch(onError);
  };
  const answer = async (request: Requested, context: ServerContext) => {
    const exchange = context.http?.authInfo?.extra?.[EXCHANGE] as Exchange | undefined;
    const attached = presentation(exchange?.presentation);
    try {
      const handle = tellsRequestIds && request.method === TOOLS_CALL ? withRequestId : asItIs;
      const proxyRequest: ProxyRequest = {
        ...requestOf(server, request, context, onError),
        era,
        login: exchange?.login ?? "",
        ...(era === "legacy" && session !== undefined ? { notifyTask } : {}),
        ...(attached === undefined ? {} : { presentation: attached }),
        ...(session === undefined ? {} : { session }),
        ...(watched === undefined ? {} : { watched }),
      };
      const result = await handle(() => proxy.handle(proxyRequest));
      if (result.resultType === "input_required" && context.mcpReq.envelope === undefined) {
        throw new Refusal(
          INTERNAL_ERROR,
          "the MCP server requests input, but the client declared no capability",
          { reason: "DEPENDENCY_UNAVAILABLE" },
        );
      }
      return result;
    } catch (thrown) {
      if (thrown instanceof Refusal && exchange !== undefined && context.mcpReq.envelope !== undefined) {
        exchange.status = STATUS.get(thrown.code);
      }
      throw thrown;
    }
  };
  server.fallbackRequestHandler = answer;
  // The SDK does not call its fallback handler for methods whose meaning differs between the two eras. So this loop
  // registers these methods separately.
  for (const method of era === "modern" ? TASK_METHODS.modern : []) {
    server.setRequestHandler(method, { params: ANY_PARAMS }, (params, context) =>
      answer({ method, params }, context),
    );
  }
  // Drops notifications that the SDK does not handle, because the proxy forwards none of them to the server.
  server.fallbackNotificationHandler = async () => {};
  return server;
}

type Result = Record<string, unknown>;

const asItIs = (run: () => Promise<Result>): Promise<Result> => run();

/** Runs a call under a new request id. Adds the id to the result's `_meta`, or to the data of the error. */
async function withRequestId(run: () => Promise<Result>): Promise<Result> {
  const requestId = randomUuid();
  try {
    const result = await inRequest({ requestId, address: "" }, run);
    const meta = isObject(result._meta) ? result._meta : {};
    return { ...result, _meta: { ...meta, [REQUEST_ID_META]: requestId } };
  } catch (thrown) {
    if (!(thrown instanceof Refusal)) throw thrown;
    throw new Refusal(thrown.code, thrown.message, { ...thrown.data, [REQUEST_ID_META]: requestId });
  }
}

/** Creates the subscriptions of one MCP session or stream. */
export function watchedResources(
  proxy: McpProxy,
  notify: (uri: string) => Promise<void>,
  onError: (error: Error) => void,
): WatchedResources {
  const { watch } = proxy.upstream;
  return new WatchedResources({
    add: (uri) => watch.add(uri),
    remove: (uri) => watch.remove(uri),
    admit: (uri, { presentation }) => proxy.admitUpdate(uri, presentation),
    notify,
    onError,
  });
}

/** The parts of a JSON-RPC request that the proxy reads. */
type Requested = Pick<JSONRPCRequest, "method" | "params">;

const ANY_PARAMS = fromJsonSchema<Record<string, unknown>>({ type: "object" });

/** Returns the parts of a request that the proxy needs, without the token. */
function requestOf(
  server: Server,
  { method, params }: Requested,
  context: ServerContext,
  onError: (error: Error) => void,
): ProxyRequest {
  const { _meta: meta, signal, notify, inputResponses, requestState, envelope } = context.mcpReq;
  const modern: Readonly<Record<string, unknown>> | undefined = envelope;
  // A client of revision 2026-07-28 declares its capabilities in each request. A client of an earlier revision
  // declares them in the first request of the MCP session.
  const clientCapabilities: Declared | undefined =
    envelope === undefined ? server.getClientCapabilities() : declaredIn({ _meta: envelope });
  const revision =
    modern?.[PROTOCOL_VERSION_META_KEY] ??
    server.getNegotiatedProtocolVersion() ??
    context.http?.req?.headers.get("mcp-protocol-version") ??
    undefined;
  const httpHeaders = envelope === undefined ? undefined : context.http?.req?.headers;
  const token = meta?.progressToken;
  const state = requestState<string>();
  return {
    method,
    params: {
      ...params,
      // Restores the answers to the server's input requests, because the SDK removes them from the parameters
      // (revision 2026-07-28).
      ...(inputResponses === undefined ? {} : { inputResponses }),
      ...(state === undefined ? {} : { requestState: state }),
    },
    signal,
    ...(clientCapabilities === undefined ? {} : { clientCapabilities }),
    ...(typeof revision === "string" ? { revision } : {}),
    ...(httpHeaders === undefined ? {} : { httpHeaders }),
    ...(envelope === undefined && clientCapabilities !== undefined
      ? { client: { capabilities: clientCapabilities, ask: askOf(context) } }
      : {}),
    ...logsOf(context, onError),
    ...(token === undefined
      ? {}
      : {
          onProgress: (progress) => {
            const notified = { ...progress, progressToken: token };
            // A task reports progress even after the response to its call. So the progress goes to the MCP session
            // and not to the call's stream.
            const send = params?.task === undefined ? notify : server.notification.bind(server);
            send({ method: "notifications/progress", params: notified }).catch(onError);
          },
        }),
  };
}

/**
 * Returns the receiver of the server's log messages for a request. In revision 2026-07-28, a request names the lowest
 * level that it wants; without a level there is no receiver. In earlier revisions the MCP session names the level, so
 * the receiver takes all messages.
 */
function logsOf({ mcpReq }: ServerContext, onError: (error: Error) => void): Pick<ProxyRequest, "logs"> {
  const envelope: Readonly<Record<string, unknown>> | undefined = mcpReq.envelope;
  const level = envelope === undefined ? "debug" : envelope[LOG_LEVEL_META_KEY];
  if (level === undefined) return {};
  return {
    logs: {
      level: String(level),
      onLog: ({ level: own, data, logger }) => void mcpReq.log(own, data, logger).catch(onError),
    },
  };
}

/**
 * Returns a function that sends a request to the client. The request travels on the stream of the client's own request.
 */
export function askOf({ mcpReq: { send, signal } }: ServerContext): AskedClient["ask"] {
  return (method, params) =>
    send({ method: method as "sampling/createMessage", params }, { timeout: ASK_MS, signal });
}

/** The key under which the SDK stores the exchange beside the request. */
const EXCHANGE = "depute.dev/exchange";

/** The HTTP status of an error response, by JSON-RPC error code (MCP 2026-07-28, Streamable HTTP). */
const STATUS: ReadonlyMap<number, number> = new Map([
  [METHOD_NOT_FOUND, 404],
  [HEADER_MISMATCH, 400],
  [MISSING_CAPABILITY, 400],
]);

/** Returns the HTTP status of an error answer in revision 2026-07-28; undefined if the status is 200. */
export function statusOf(code: number): number | undefined {
  return STATUS.get(code);
}

/**
 * Sets the HTTP status that the request's MCP revision defines for an error. A streamed answer keeps its status,
 * because its headers are already sent.
 */
export function withStatus(answer: Response, status: number | undefined): Response {
  const { headers, body } = answer;
  const isJson = headers.get("content-type")?.startsWith("application/json") === true;
  return status === undefined || !isJson ? answer : new Response(body, { status, headers });
}

/** A request over HTTP, and the HTTP status for the request's error. */
export interface Exchange {
  readonly presentation: Presentation | undefined;
  /** The principal of the request's login; absent or empty where the server needs no login. */
  readonly login?: string;
  status?: number | undefined;
}

/** Attaches a request's exchange, so that the SDK passes the exchange to the request's handler. */
export function withExchange(exchange: Exchange): { authInfo: AuthInfo } {
  return { authInfo: { token: "", clientId: "", scopes: [], extra: { [EXCHANGE]: exchange } } };
}

/** Attaches a request's token, so that the SDK passes the token to the request's handler. */
export function withPresentation(presentation: Presentation | undefined): { authInfo?: AuthInfo } {
  return presentation === undefined ? {} : withExchange({ presentation });
}

/** Returns a factory of servers, for the SDK's transports. */
export function downstreamFactory(options: Omit<DownstreamOptions, "era">): McpServerFactory {
  return ({ era }) => downstream({ ...options, era });
}

/** Returns the server's capabilities without those that the proxy does not support, and without tasks. */
function capabilitiesOf(
  { tools, resources, prompts, completions, logging }: ServerCapabilities,
  subscribes: boolean,
): ServerCapabilities {
  return {
    ...(tools === undefined ? {} : { tools: { listChanged: true } }),
    ...(resources === undefined
      ? {}
      : {
          resources: {
            listChanged: true,
            ...(subscribes && resources.subscribe === true ? { subscribe: true } : {}),
          },
        }),
    ...(prompts === undefined ? {} : { prompts: { listChanged: true } }),
    ...(completions === undefined ? {} : { completions: {} }),
    ...(logging === undefined ? {} : { logging: {} }),
  };
}
