import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { systemClock, systemTimers } from "@depute/core";
import { noCredentials } from "../credentials.ts";
import { createFastPath, type FastPath } from "../fast/fast-path.ts";
import { serverInterceptors } from "../interceptors/server.ts";
import { NO_INTERNAL_SECRETS } from "../internal-secrets.ts";
import { createLogger, type Logger } from "../log.ts";
import { createMetrics } from "../metrics.ts";
import { createRpcHandler } from "../rpc-handler.ts";
import { type Server, type ServerOptions, startServer } from "../server.ts";
import { type EchoTrace, echoRoutes } from "./echo.ts";

export interface EchoServerOptions {
  /** Whether the fast path is tried before the adapter. */
  fast: boolean;
  maxRequestBytes: number;
  /** Milliseconds in which a request's body must arrive; 30 seconds when absent. */
  bodyTimeoutMs?: number;
  /** Stores what the handlers record; see {@link EchoTrace}. */
  trace?: EchoTrace;
  log?: Logger;
  /** Aborts when the process drains. */
  stopping?: AbortSignal;
  /** Routes that replace the echo service. */
  routes?: (router: ConnectRouter) => void;
  /** Whether the server checks requests against the rules of their contract; true when absent. */
  validated?: boolean;
  /** Other options of the server. */
  server?: Partial<ServerOptions>;
}

export interface EchoServer {
  readonly server: Server;
  readonly trace: EchoTrace;
  readonly interceptors: Interceptor[];
  /** For each call that the server offered to the fast path, in order: whether the fast path served it. */
  readonly tookFastPath: boolean[];
}

/** Starts the echo service on a free port, with all interceptors of a service. */
export async function startEchoServer(options: EchoServerOptions): Promise<EchoServer> {
  const { fast, maxRequestBytes, log = createLogger({ level: "silent", name: "test" }) } = options;
  const trace = options.trace ?? { started: 0, ended: [] };
  const all = serverInterceptors({
    log,
    metrics: createMetrics(),
    clock: systemClock,
    timers: systemTimers,
    defaultDeadline: 30_000,
    maxDeadline: 60_000,
    auth: "open",
    credentials: noCredentials,
    internalSecrets: NO_INTERNAL_SECRETS,
    reach: { publicUrl: "http://here" },
    tracing: false,
    stopping: options.stopping ?? new AbortController().signal,
  });
  // The interceptor that checks contract rules is the last one.
  const interceptors = options.validated === false ? all.slice(0, -1) : all;
  const rpc = {
    routes: options.routes ?? echoRoutes(trace),
    interceptors,
    ...{
      maxRequestBytes,
      bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000,
      clock: systemClock,
      timers: systemTimers,
      log,
    },
  };
  const tookFastPath: boolean[] = [];
  const server = await startServer({
    place: { host: "127.0.0.1", port: 0 },
    rpc: createRpcHandler(rpc),
    ...(fast ? { fast: recordFastPath(createFastPath(rpc), tookFastPath) } : {}),
    routes: [],
    maxConnections: 100,
    maxConcurrentStreams: 100,
    log,
    timers: systemTimers,
    ...options.server,
  });
  return { server, trace, interceptors, tookFastPath };
}

function recordFastPath({ stream, request }: FastPath, tookFastPath: boolean[]): FastPath {
  const record = (took: boolean) => {
    tookFastPath.push(took);
    return took;
  };
  return { stream: (...of) => record(stream(...of)), request: (...of) => record(request(...of)) };
}
