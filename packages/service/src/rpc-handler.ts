import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  type Interceptor,
} from "@connectrpc/connect";
import type { UniversalServerResponse } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import type { Timers } from "@depute/core";
import { hostOfUrl } from "./authority-host.ts";
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
import { isBodyUnread } from "./unread-body.ts";

/**
 * Bytes from which on an answer is compressed for a caller that takes it. Most answers are shorter: to compress one of a
 * kilobyte costs a third of a verification, and saves what is no packet.
 */
export const COMPRESS_MIN_BYTES = 8192;

export interface RpcHandlerOptions {
  routes: (router: ConnectRouter) => void;
  interceptors: Interceptor[];
  /** Bytes of one request message, after decompression. */
  maxRequestBytes: number;
  /** Milliseconds that the body of a unary call, or of one that is answered with a stream, may take to come. */
  bodyTimeoutMs: number;
  timers: Timers;
  log: Logger;
  /** How services differ; absent for none that does. */
  manners?: Manners;
}

/** Answers RPCs over gRPC, gRPC-Web and Connect; gives false for a path that is none. */
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

/** One method, as Connect's adapter answers it. */
export interface RpcMethod {
  readonly handle: ReasonedHandler;
  /** Whether the request is one message: its body is read as a whole. */
  readonly isWhole: boolean;
  /** Whether Connect's GET is served, and HEAD with it. */
  readonly takesGet: boolean;
  /** What the service adds to its errors. */
  readonly note: ErrorNote | undefined;
}

/** The bounds of the body of a request that is one message. */
export function bodyLimitsOf(
  { maxRequestBytes, bodyTimeoutMs: timeoutMs, timers }: RpcHandlerOptions,
  contentType: string | undefined,
): BodyLimits {
  const isEnveloped = /^application\/(?:grpc|connect\+)/i.test(contentType ?? "");
  return { maxBytes: maxRequestBytes, isEnveloped, name: "message_bytes", timeoutMs, timers };
}

/** Connect's handlers by the path that they answer. */
export function createHandlers(options: RpcHandlerOptions): Map<string, RpcMethod> {
  const handlers = new Map<string, RpcMethod>();
  const strict = routerOf(options, STRICT).handlers;
  for (const [index, lenient] of routerOf(options, LENIENT).handlers.entries()) {
    const handler = (refusesUnknownFields(lenient.method) ? strict[index] : lenient) ?? lenient;
    const note = options.manners?.get(handler.service.typeName)?.errorNote;
    const { methodKind } = handler.method;
    handlers.set(handler.requestPath, {
      handle: withReasons(withFieldLimit(handler, options.maxRequestBytes), handler.allowedMethods, note),
      isWhole: methodKind === "unary" || methodKind === "server_streaming",
      takesGet: handler.allowedMethods.includes("GET"),
      note,
    });
  }
  return handlers;
}

/** Connect takes one set of JSON options for all that a router registers. */
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

/** Whoever went away in the middle of an answer has no use for a line in the log. */
export function logUnsent(log: Logger, path: string, error: unknown): void {
  const { code } = ConnectError.from(error);
  if (code === Code.Aborted || code === Code.Canceled) return;
  log.warn({ err: error, rpc: path }, "an answer could not be sent");
}

/** Connect builds a URL from the authority, and resets the stream when that fails. */
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
  const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
  if (!isWhole) return universalResponseToNodeResponse(await handle(universal), response);
  const limits = bodyLimitsOf(options, request.headers["content-type"]);
  const isHead = takesGet && request.method === "HEAD";
  const answered = await handle({
    ...universal,
    ...(isHead && { method: "GET" }),
    body: wholeBody(() => readBody(request, limits), note),
  });
  // A request of one message is answered before its end only by a refusal.
  if (isHead || isBodyUnread(request)) return sendWhole(response, answered.status, await gathered(answered));
  await universalResponseToNodeResponse(answered, response);
}

/** A body as the adapter takes it. A refusal of it is answered in the words of the call's protocol. */
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
