import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  type Interceptor,
} from "@connectrpc/connect";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { hostOfUrl } from "./authority-host.ts";
import { COMPRESSIONS, encodingGate } from "./encodings.ts";
import { withFieldLimit } from "./field-limit/with-field-limit.ts";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import { type JsonOptions, LENIENT, refusesUnknownFields, STRICT } from "./json-options.ts";
import type { Logger } from "./log.ts";
import { type ReasonedHandler, withReasons } from "./protocol-errors.ts";
import { type Manners, NO_MANNERS } from "./service-manners.ts";

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
    answer(handler, request, response).catch((error: unknown) => {
      response.destroy();
      logUnsent(log, path, error);
    });
    return true;
  };
}

/** Connect's handlers by the path that they answer. */
export function createHandlers(options: RpcHandlerOptions): Map<string, ReasonedHandler> {
  const handlers = new Map<string, ReasonedHandler>();
  const strict = routerOf(options, STRICT).handlers;
  for (const [index, lenient] of routerOf(options, LENIENT).handlers.entries()) {
    const handler = (refusesUnknownFields(lenient.method) ? strict[index] : lenient) ?? lenient;
    const note = options.manners?.get(handler.service.typeName)?.errorNote;
    handlers.set(handler.requestPath, withReasons(withFieldLimit(handler, options.maxRequestBytes), note));
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

async function answer(handler: ReasonedHandler, request: HttpRequest, response: HttpResponse): Promise<void> {
  nameHost(request);
  const answered = await handler(universalRequestFromNodeRequest(request, response, undefined, undefined));
  await universalResponseToNodeResponse(answered, response);
}
