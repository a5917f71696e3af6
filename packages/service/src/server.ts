import {
  createServer as createHttp1Server,
  type Server as Http1Server,
  type ServerResponse,
} from "node:http";
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import { type Random, systemRandom, type Timers } from "@depute/core";
import { takeOriginForm } from "./absolute-form.ts";
import { createCors } from "./cors.ts";
import { type Door, REFUSE_PAGES } from "./door.ts";
import type { FastPath } from "./fast/fast-path.ts";
import {
  sendHeadersTooLong,
  sendHttpRefusal,
  sendNotLetIn,
  sendThrown,
  sendUnknownPath,
} from "./http-answers.ts";
import { methodNotAllowed, unknownPath } from "./http-refusal.ts";
import { createRouteTable, type HttpRequest, type HttpResponse, type HttpRoute } from "./http-routes.ts";
import type { Logger } from "./log.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "./request-id.ts";
import type { RpcHandler } from "./rpc-handler.ts";
import { type Manners, NO_MANNERS } from "./service-manners.ts";
import type { Certificates } from "./tls/certificates.ts";
import { limitAge } from "./tls/connection-age.ts";
import { type ListenerOptions, type Place, startListener } from "./tls/listener.ts";
import { createUpgrades, type UpgradeRoute } from "./upgrades.ts";

/** The first bytes of an HTTP/2 connection (RFC 9113 section 3.4). No HTTP/1.1 request begins with these bytes. */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n");

export type HttpVersion = 1 | 2;

/**
 * Detects the protocol of a connection from its first bytes, and puts the bytes back into the socket. If too few bytes
 * arrive within `timeoutMs`, closes the connection and does not call `decided`.
 */
export function sniffProtocol(
  socket: Socket,
  timers: Timers,
  timeoutMs: number,
  decided: (version: HttpVersion) => void,
): void {
  let seen: Buffer = Buffer.alloc(0);
  const cancel = timers.after(timeoutMs, () => socket.destroy());
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const length = Math.min(seen.length, PREFACE.length);
    const alike = seen.compare(PREFACE, 0, length, 0, length) === 0;
    if (alike && seen.length < PREFACE.length) return;
    forget();
    socket.unshift(seen);
    decided(alike ? 2 : 1);
  };
  const onError = () => socket.destroy();
  const forget = () => {
    cancel();
    socket.off("readable", onReadable);
    socket.off("error", onError);
    socket.off("close", forget);
  };
  socket.on("readable", onReadable);
  socket.on("error", onError);
  socket.on("close", forget);
}

/** Maximum size of a request's headers. The limit allows for tokens with long chains. */
export const MAX_HEADER_BYTES = 32 * 1024;
/**
 * Milliseconds in which a client must send its first bytes, and also milliseconds in which it must send a request's
 * headers.
 */
const HEADERS_TIMEOUT_MS = 10_000;
/** Milliseconds in which a client must send a whole HTTP/1.1 request. */
const REQUEST_TIMEOUT_MS = 120_000;
/** Milliseconds between checks for slow connections. */
const CHECK_INTERVAL_MS = 2000;

export interface ServerOptions {
  /** The address to listen on. Port 0 is any free port. */
  place: Place;
  /** A second address to listen on, which other processes may share. */
  sharedPlace?: Place | undefined;
  /** Serves RPCs. The server tries this handler before the routes. */
  rpc: RpcHandler;
  /**
   * Tried first for a request that passes the door and has headers within the limit, except HTTP/2 streams with
   * `Origin`. The other handlers serve every other request, and a request for which this handler returns false.
   */
  fast?: FastPath;
  routes: readonly HttpRoute[];
  upgrades?: readonly UpgradeRoute[];
  /**
   * Checks the head of every request before its handler runs. Default: REFUSE_PAGES, which admits only the server's own
   * pages on loopback.
   */
  door?: Door;
  /** Origins of pages that may read responses; none when absent. `door` must also admit these pages. */
  origins?: readonly string[];
  maxConnections: number;
  maxConcurrentStreams: number;
  /** Age in milliseconds at which the server asks a connection's client to reconnect; no limit when absent or 0. */
  maxConnectionAgeMs?: number;
  /** The certificates of TLS; clear text when absent. */
  certificates?: Certificates;
  log: Logger;
  timers: Timers;
  /** The random source that varies the maximum ages of connections; the system's source when absent. */
  random?: Random;
  /** Differences of services with published contracts from the platform's rules; absent if there are none. */
  manners?: Manners;
}

export interface Server {
  /** The address on which the server listens, e.g. `https://127.0.0.1:8080` or `unix:/run/depute/gateway.sock`. */
  readonly url: string;
  readonly port: number;
  /**
   * Stops listening, and asks clients to reconnect elsewhere. Then waits up to `drainMs` milliseconds for open
   * calls, and closes all connections.
   */
  close(drainMs: number): Promise<void>;
}

/**
 * Listens on each given address for both HTTP/1.1 and HTTP/2, in clear text or with TLS. A connection's first bytes
 * select the protocol.
 *
 * @throws the errors of listen, e.g. EADDRINUSE
 */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { place, certificates, maxConnections, maxConcurrentStreams, log, timers } = options;
  const { door = REFUSE_PAGES, maxConnectionAgeMs: maxAgeMs = 0, random = systemRandom } = options;
  const age = { maxAgeMs, timers, random };
  const sockets = new Set<Socket>();
  const aged = new WeakSet<Socket>();
  const undecided = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let draining = false;

  const answer = createHandler(options);
  const upgrades = createUpgrades(options.upgrades ?? [], door, log);
  const http1 = createHttp1Server({
    // A request for any other upgrade, such as to clear-text HTTP/2, is answered over HTTP/1.1.
    shouldUpgradeCallback: (request) => !draining && upgrades.isWanted(request),
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
    // A connection at its maximum age closes after this response. The client opens a new connection for its next
    // request.
    if (aged.has(request.socket)) response.shouldKeepAlive = false;
    answer(request, response);
  });
  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams, maxHeaderListSize: MAX_HEADER_BYTES },
  });
  // This server never listens. It only converts a stream to Node's common form of request and response.
  const common = createHttp2Server();
  common.on("request", answer);
  http2.on("stream", (stream, headers, flags, rawHeaders) => {
    if (
      options.fast !== undefined &&
      // Responses to pages need additional headers, which only the common form of a stream can carry.
      headers.origin === undefined &&
      bytesOf(rawHeaders) <= MAX_HEADER_BYTES &&
      door({ headers, rawHeaders, httpVersion: 2 }) === undefined &&
      options.fast.stream(stream, headers)
    )
      return;
    common.emit("stream", stream, headers, flags, rawHeaders);
  });
  http2.on("session", (session) => {
    sessions.add(session);
    // At its maximum age, the session accepts no new streams; open streams continue.
    const cancelAge = limitAge(age, () => session.close());
    session.once("close", () => {
      cancelAge();
      sessions.delete(session);
    });
    // A session that begins after the drain has started closes at once.
    if (draining) session.close();
  });
  http2.on("sessionError", (error) => log.debug({ err: error }, "an HTTP/2 connection broke"));

  const listening: ListenerOptions = {
    ...(certificates && { certificates }),
    maxConnections,
    handshakeTimeoutMs: HEADERS_TIMEOUT_MS,
    log,
    onSocket(socket) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
      socket.setNoDelay(true);
    },
    onConnection(socket) {
      undecided.add(socket);
      socket.once("close", () => undecided.delete(socket));
      sniffProtocol(socket, timers, HEADERS_TIMEOUT_MS, (version) => {
        undecided.delete(socket);
        if (version === 1) {
          const cancelAge = limitAge(age, () => aged.add(socket));
          socket.once("close", cancelAge);
        }
        (version === 2 ? http2 : http1).emit("connection", socket);
      });
    },
  };
  const listener = await startListener(place, listening);
  const shared =
    options.sharedPlace &&
    (await startListener(options.sharedPlace, listening).catch(async (error) => {
      await listener.close();
      throw error;
    }));
  // The HTTP/1.1 server never listens itself, so this event starts its check for slow headers.
  http1.emit("listening");

  return {
    url: listener.url,
    port: listener.port,
    async close(drainMs) {
      if (draining) return;
      draining = true;
      const closed = Promise.all([listener.close(), shared?.close()]);
      for (const socket of undecided) socket.destroy();
      for (const session of sessions) session.close();
      stop(http1);
      stop(http2);
      const cancel = timers.after(drainMs, () => {
        log.warn({ connections: sockets.size }, "closing the connections that are still open");
        for (const socket of sockets) socket.destroy();
      });
      await closed;
      cancel();
    },
  };
}

/**
 * Closes idle connections, and stops the timers of the server. Ignores the error of close(), which the server reports
 * because it never listened.
 */
function stop(server: Http1Server | Http2Server): void {
  if ("closeIdleConnections" in server) server.closeIdleConnections();
  server.close(() => {});
}

function createHandler({
  rpc,
  fast,
  routes,
  door = REFUSE_PAGES,
  origins = [],
  log,
  manners = NO_MANNERS,
}: ServerOptions): (request: HttpRequest, response: HttpResponse) => void {
  const find = createRouteTable(routes);
  const cors = createCors(origins);
  return (request, response) => {
    if (!request.url?.startsWith("/")) takeOriginForm(request);
    const path = request.url?.split("?", 1)[0] ?? "";
    const note = manners.get(path.split("/", 2)[1] ?? "")?.errorNote;
    if (headersTooLong(request)) return sendHeadersTooLong(request, response, MAX_HEADER_BYTES, note);
    const { headers, rawHeaders } = request;
    const refusal = door({ headers, rawHeaders, httpVersion: "stream" in request ? 2 : 1 });
    if (refusal !== undefined) return sendNotLetIn(request, response, refusal, note);
    if (cors?.(request, response) === true) return;
    if (!("stream" in request) && fast?.request(request, response as ServerResponse) === true) return;
    if (rpc(request, response, path)) return;
    const match = find(request.method ?? "", path);
    if (match === undefined) return sendUnknownPath(request, response, path, note);
    const id = requestIdFrom(request.headers[REQUEST_ID_HEADER] as string | undefined);
    response.setHeader(REQUEST_ID_HEADER, id);
    if ("allow" in match) {
      const { allow, refuse = sendHttpRefusal } = match;
      return refuse(request, response, allow.length === 0 ? unknownPath(path) : methodNotAllowed(allow));
    }
    response.on("error", (error) => log.debug({ err: error, path }, "a response could not be sent"));
    const { route, parameters } = match;
    (async () => route.handle(request, response, parameters))().catch((thrown: unknown) => {
      const error = sendThrown(response, thrown, id);
      const level = error.code === Code.Internal ? "error" : "info";
      log[level]({ err: thrown, path, request_id: id }, "http");
    });
  };
}

/**
 * Whether headers exceed the limit. Node.js enforces the limit for HTTP/1.1. Over HTTP/2, Node.js only
 * announces the limit to clients.
 */
function headersTooLong(request: HttpRequest): boolean {
  return "stream" in request && bytesOf(request.rawHeaders) > MAX_HEADER_BYTES;
}

function bytesOf(rawHeaders: readonly string[]): number {
  let bytes = 0;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
