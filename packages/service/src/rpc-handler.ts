import {
  Code,
  ConnectError,
  type ConnectRouter,
  createConnectRouter,
  type Interceptor,
} from "@connectrpc/connect";
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { HttpRequest, HttpResponse } from "./http-routes.ts";
import type { Logger } from "./log.ts";
import { type ReasonedHandler, withReasons } from "./protocol-errors.ts";

export interface RpcHandlerOptions {
  routes: (router: ConnectRouter) => void;
  interceptors: Interceptor[];
  /** Bytes of one request message, after decompression. */
  maxRequestBytes: number;
  log: Logger;
}

/** Answers RPCs over gRPC, gRPC-Web and Connect; gives false for a path that is none. */
export type RpcHandler = (request: HttpRequest, response: HttpResponse, path: string) => boolean;

/** Serves implementations by Connect's own adapter. */
export function createRpcHandler({
  routes,
  interceptors,
  maxRequestBytes,
  log,
}: RpcHandlerOptions): RpcHandler {
  const router = createConnectRouter({
    interceptors,
    readMaxBytes: maxRequestBytes,
    acceptCompression: [compressionGzip],
  });
  routes(router);
  const handlers = new Map<string, ReasonedHandler>();
  for (const handler of router.handlers) handlers.set(handler.requestPath, withReasons(handler));

  return (request, response, path) => {
    const handler = handlers.get(path);
    if (handler === undefined) return false;
    answer(handler, request, response).catch((error: unknown) => {
      response.destroy();
      // Whoever went away in the middle of an answer has no use for a line in the log.
      const { code } = ConnectError.from(error);
      if (code === Code.Aborted || code === Code.Canceled) return;
      log.warn({ err: error, rpc: path }, "an answer could not be sent");
    });
    return true;
  };
}

async function answer(handler: ReasonedHandler, request: HttpRequest, response: HttpResponse): Promise<void> {
  const answered = await handler(universalRequestFromNodeRequest(request, response, undefined, undefined));
  await universalResponseToNodeResponse(answered, response);
}
