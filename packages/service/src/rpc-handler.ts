import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  createContextValues,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Clock, Timers } from "@depute/core";
import { hostOfUrl } from "./authority-host.ts";
import { clientAddressKey, clientCertificateKey } from "./call-values.ts";
import { type ClientAddresses, DIRECT_CLIENTS } from "./client-address.ts";
import { COMPRESSIONS, encodingGate } from "./encodings.ts";
import { toConnectError, withNote } from "./errors-on-wire.ts";
import { withFieldLimit } from "./field-limit/with-field-limit.ts";
import { sendWhole } from "./http-answers.ts";
import { type BodyLimits, readBody } from "./http-body.ts";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import { type JsonOptions, LENIENT, refusesUnknownFields, STRICT } from "./json-options.ts";
import type { Logger } from "./log.ts";
import { type ReasonedHandler, withReasons } from "./protocol-errors.ts";
import { type ErrorNote, type Manners, NO_MANNERS } from "./service-manners.ts";
import { certificateOfRequest } from "./tls/client-certificate.ts";
import { isBodyUnread } from "./unread-body.ts";

/**
 * The size in bytes from which a response is compressed, if the client accepts compression. Most responses are shorter.
 * Compressing a short response costs CPU time and saves few bytes.
 */
export const COMPRESS_MIN_BYTES = 8192;

export interface RpcHandlerOptions {
  routes: (router: ConnectRouter) => void;
  interceptors: Interceptor[];
  /** Maximum size of a request message in bytes, after decompression. */
  maxRequestBytes: number;
  /** Milliseconds in which the whole body of a call must arrive, if the request of the method is one message. */
  bodyTimeoutMs: number;
  /** The clock for deadlines of calls. */
  clock: Clock;
  timers: Timers;
  log: Logger;
  /** Finds the addresses of clients. If absent, no proxy is trusted. */
  addresses?: ClientAddresses;
  /** Differences of services with published contracts from the platform's rules; absent if there are none. */
  manners?: Manners;
}

/** Serves RPCs over gRPC, gRPC-Web and Connect. Returns false if the path is not the path of an RPC. */
export type RpcHandler = (request: HttpRequest, response: HttpResponse, path: string) => boolean;

/** Serves implementations by Connect's own adapter. */
export function createRpcHandler(options: RpcHandlerOptions): RpcHandler {
  const { log } = options;
  const handlers = createHandlers(options);
  return (request, response, path) => {
    const handler = handlers.get(path);
    if (handler === undefined) return false;
    answer(handler, request, response, options).catch((error: unknown) => {
      response.destroy();
      logUnsent(log, path, error);
    });
    return true;
  };
}

/** One method, with the handler of Connect's adapter. */
export interface RpcMethod {
  readonly handle: ReasonedHandler;
  /** Whether the request is one message. The body of such a request is read as a whole. */
  readonly isWhole: boolean;
  /** Whether clients may call the method by Connect's GET, and therefore by HEAD. */
  readonly takesGet: boolean;
  /** The data that the service adds to its errors. */
  readonly note: ErrorNote | undefined;
}

/** Returns the limits of a request's body, for a request of one message. */
export function bodyLimitsOf(
  { maxRequestBytes, bodyTimeoutMs: timeoutMs, timers }: RpcHandlerOptions,
  contentType: string | undefined,
): BodyLimits {
  const isEnveloped = /^application\/(?:grpc|connect\+)/i.test(contentType ?? "");
  return { maxBytes: maxRequestBytes, isEnveloped, name: "message_bytes", timeoutMs, timers };
}

/** Creates Connect's handlers, by the path of the method that each handler serves. */
export function createHandlers(options: RpcHandlerOptions): Map<string, RpcMethod> {
  const handlers = new Map<string, RpcMethod>();
  const strict = routerOf(options, STRICT).handlers;
  for (const [index, lenient] of routerOf(options, LENIENT).handlers.entries()) {
    const handler = (refusesUnknownFields(lenient.method) ? strict[index] : lenient) ?? lenient;
    const note = options.manners?.get(handler.service.typeName)?.errorNote;
    const { methodKind } = handler.method;
    handlers.set(handler.requestPath, {
      handle: withReasons(withFieldLimit(handler, options.maxRequestBytes), handler, note),
      isWhole: methodKind === "unary" || methodKind === "server_streaming",
      takesGet: handler.allowedMethods.includes("GET"),
      note,
    });
  }
  return handlers;
}

/** Registers the services in a new router, because Connect accepts one set of JSON options per router. */
function routerOf(options: RpcHandlerOptions, jsonOptions: JsonOptions): ConnectRouter {
  const router = createConnectRouter({
    interceptors: options.interceptors,
    readMaxBytes: options.maxRequestBytes,
    acceptCompression: COMPRESSIONS,
    compressMinBytes: COMPRESS_MIN_BYTES,
    requestGate: encodingGate(options.manners ?? NO_MANNERS),
    jsonOptions,
  });
  options.routes(router);
  return router;
}

/** Logs a response that could not be sent, unless the caller has disconnected. */
export function logUnsent(log: Logger, path: string, error: unknown): void {
  const { code } = ConnectError.from(error);
  if (code === Code.Aborted || code === Code.Canceled) return;
  log.warn({ err: error, rpc: path }, "a response could not be sent");
}

/**
 * Replaces an authority that cannot be part of a URL. Otherwise Connect could not build the URL, and would reset the
 * stream.
 */
function nameHost(request: HttpRequest): void {
  const { headers } = request;
  const authority = String(headers[":authority"] ?? headers.host ?? "");
  headers["stream" in request ? ":authority" : "host"] = hostOfUrl(authority);
}

async function answer(
  { handle, isWhole, takesGet, note }: RpcMethod,
  request: HttpRequest,
  response: HttpResponse,
  options: RpcHandlerOptions,
): Promise<void> {
  nameHost(request);
  const values = createContextValues()
    .set(clientCertificateKey, certificateOfRequest(request))
    .set(clientAddressKey, (options.addresses ?? DIRECT_CLIENTS).ofRequest(request));
  const universal = universalRequestFromNodeRequest(request, response, undefined, values);
  if (!isWhole) return universalResponseToNodeResponse(await handle(universal), response);
  const limits = bodyLimitsOf(options, request.headers["content-type"]);
  const isHead = takesGet && request.method === "HEAD";
  const answered = await handle({
    ...universal,
    ...(isHead && { method: "GET" }),
    body: wholeBody(() => readBody(request, limits), note),
  });
  // A cache could return the response of a GET to another caller, or return an outdated response.
  if (isHead || request.method === "GET") answered.header = withoutStorage(answered.header);
  // A response to HEAD has no body, and a refusal may leave the request's body unread. `sendWhole` handles both cases.
  if (isHead || isBodyUnread(request)) return sendWhole(response, answered.status, await gathered(answered));
  await universalResponseToNodeResponse(answered, response);
}

/** Returns the headers of a response that no cache may store. */
function withoutStorage(header = new Headers()): Headers {
  header.set("cache-control", "no-store");
  return header;
}

/**
 * Yields the body that `read` returns, for the adapter. If `read` refuses the body, throws the refusal, so that the
 * adapter sends it.
 */
export async function* wholeBody(
  read: () => Promise<Buffer>,
  note: ErrorNote | undefined,
): AsyncIterable<Uint8Array> {
  let body: Buffer;
  try {
    body = await read();
  } catch (thrown) {
    throw withNote(toConnectError(thrown), note);
  }
  if (body.length > 0) yield body;
}

async function gathered({ header = new Headers(), body, trailer }: UniversalServerResponse) {
  const chunks: Uint8Array[] = [];
  for await (const chunk of body ?? []) chunks.push(chunk);
  return { headers: header, bytes: Buffer.concat(chunks), trailers: trailer };
}
