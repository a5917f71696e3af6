import { createServer as createHttp1Server, type Server as Http1Server } from "node:http";
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from "node:http2";
import { type AddressInfo, createServer as createNetServer, isIP, type Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import type { Timers } from "@depute/core";
import { type Door, REFUSE_PAGES } from "./door.ts";
import type { StreamHandler } from "./fast/fast-path.ts";
import {
  sendHeadersTooLong,
  sendMethodNotAllowed,
  sendNotLetIn,
  sendThrown,
  sendUnknownPath,
} from "./http-answers.ts";
import { createRouteTable, type HttpRequest, type HttpResponse, type HttpRoute } from "./http-routes.ts";
import type { Logger } from "./log.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "./request-id.ts";
import type { RpcHandler } from "./rpc-handler.ts";
import { type Manners, NO_MANNERS } from "./service-manners.ts";
import { sniffProtocol } from "./sniff.ts";
import { createUpgrades, type UpgradeRoute } from "./upgrades.ts";

/** Tokens with long chains travel in headers. */
export const MAX_HEADER_BYTES = 32 * 1024;
/** Milliseconds that a client has for its first bytes, and for a request's headers. */
const HEADERS_TIMEOUT_MS = 10_000;
/** Milliseconds that a client has for a whole request over HTTP/1.1. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Milliseconds between looks at who takes longer than that. */
const CHECK_INTERVAL_MS = 2000;

export interface ServerOptions {
  host: string;
  /** 0: any free port. */
  port: number;
  /** RPCs; asked before the routes. */
  rpc: RpcHandler;
  /** Asked first about what comes over HTTP/2; what it leaves, and what is too long, goes the common way. */
  fast?: StreamHandler;
  routes: readonly HttpRoute[];
  upgrades?: readonly UpgradeRoute[];
  /** Checks every request before its handler runs; refuses all pages when absent. */
  door?: Door;
  maxConnections: number;
  maxConcurrentStreams: number;
  log: Logger;
  timers: Timers;
  /** How services differ; absent for none that does. */
  manners?: Manners;
}

export interface Server {
  /** The address that it listens on, e.g. `http://127.0.0.1:8080`. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops listening, tells clients to go elsewhere, waits for open calls up to `drainMs` milliseconds, and then cuts
   * what is left.
   */
  close(drainMs: number): Promise<void>;
}

/**
 * Listens on one port for HTTP/1.1 and clear-text HTTP/2; a connection's first bytes tell which it is.
 *
 * @throws what listening throws, e.g. EADDRINUSE
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { host, port, maxConnections, maxConcurrentStreams, log, timers, door = REFUSE_PAGES } = options;
  const sockets = new Set<Socket>();
  const undecided = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let draining = false;

  const answer = createHandler(options);
  const upgrades = createUpgrades(options.upgrades ?? [], door, log);
  const http1 = createHttp1Server({
    // Whatever else asks for another protocol, as clients of clear-text HTTP/2 do, is answered in this one.
    shouldUpgradeCallback: (request) => !draining && upgrades.wants(request),
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: CHECK_INTERVAL_MS,
  });
  http1.on("upgrade", upgrades.take);
  http1.on("request", (request, response) => {
    response.once("close", () => {
      if (draining) setImmediate(() => http1.closeIdleConnections());
    });
    answer(request, response);
  });
  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams, maxHeaderListSize: MAX_HEADER_BYTES },
  });
  // It never listens; it makes Node's common form of a request and its response of a stream.
  const common = createHttp2Server();
  common.on("request", answer);
  http2.on("stream", (stream, headers, flags, rawHeaders) => {
    if (
      options.fast !== undefined &&
      bytesOf(rawHeaders) <= MAX_HEADER_BYTES &&
      door({ headers, rawHeaders, httpVersion: 2 }) === undefined &&
      options.fast(stream, headers)
    )
      return;
    common.emit("stream", stream, headers, flags, rawHeaders);
  });
  http2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    // A session begun in the moment of draining.
    if (draining) session.close();
  });
  http2.on("sessionError", (error) => log.debug({ err: error }, "an HTTP/2 connection broke"));

  const net = createNetServer((socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    undecided.add(socket);
    socket.once("close", () => undecided.delete(socket));
    socket.setNoDelay(true);
    sniffProtocol(socket, timers, HEADERS_TIMEOUT_MS, (version) => {
      undecided.delete(socket);
      (version === 2 ? http2 : http1).emit("connection", socket);
    });
  });
  net.maxConnections = maxConnections;
  await new Promise<void>((resolve, reject) => {
    net.once("error", reject);
    net.listen(port, host, () => {
      net.off("error", reject);
      resolve();
    });
  });
  // It never listens itself; this starts its watch over slow headers.
  http1.emit("listening");
  net.on("error", (error) => log.error({ err: error }, "the listening socket failed"));

  const bound = (net.address() as AddressInfo).port;
  return {
    url: `http://${isIP(host) === 6 ? `[${host}]` : host}:${bound}`,
    port: bound,
    async close(drainMs) {
      if (draining) return;
      draining = true;
      const closed = new Promise<void>((resolve) => net.close(() => resolve()));
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) session.close();
      stop(http1);
      stop(http2);
      const cancel = timers.after(drainMs, () => {
        log.warn({ connections: sockets.size }, "cutting the connections that are still open");
        for (const socket of sockets) socket.destroy();
      });
      await closed;
      cancel();
    },
  };
}

/** Lets go of idle connections and of the server's own timers. It was never listening, which close() complains about. */
function stop(server: Http1Server | Http2Server): void {
  if ("closeIdleConnections" in server) server.closeIdleConnections();
  server.close(() => {});
}

function createHandler({
  rpc,
  routes,
  door = REFUSE_PAGES,
  log,
  manners = NO_MANNERS,
}: ServerOptions): (request: HttpRequest, response: HttpResponse) => void {
  const find = createRouteTable(routes);
  return (request, response) => {
    const path = request.url?.split("?", 1)[0] ?? "";
    const note = manners.get(path.split("/", 2)[1] ?? "")?.errorNote;
    if (headersTooLong(request)) return sendHeadersTooLong(request, response, MAX_HEADER_BYTES, note);
    const { headers, rawHeaders } = request;
    const refusal = door({ headers, rawHeaders, httpVersion: "stream" in request ? 2 : 1 });
    if (refusal !== undefined) return sendNotLetIn(request, response, refusal, note);
    if (rpc(request, response, path)) return;
    const match = find(request.method ?? "", path);
    if (match === undefined) return sendUnknownPath(request, response, path, note);
    if ("allow" in match) return sendMethodNotAllowed(response, match.allow);
    const id = requestIdFrom(request.headers[REQUEST_ID_HEADER] as string | undefined);
    response.setHeader(REQUEST_ID_HEADER, id);
    response.on("error", (error) => log.debug({ err: error, path }, "an answer could not be sent"));
    const { route, parameters } = match;
    (async () => route.handle(request, response, parameters))().catch((thrown: unknown) => {
      const error = sendThrown(response, thrown, id);
      const level = error.code === Code.Internal ? "error" : "info";
      log[level]({ err: thrown, path, request_id: id }, "http");
    });
  };
}

/** HTTP/2's parser only advises its clients of the limit; HTTP/1.1's holds them to it. */
function headersTooLong(request: HttpRequest): boolean {
  return "stream" in request && bytesOf(request.rawHeaders) > MAX_HEADER_BYTES;
}

function bytesOf(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
