import type { ConnectRouter, Interceptor } from "@connectrpc/connect";
import { systemClock, systemTimers } from "@depute/core";
import { noCredentials } from "../credentials.ts";
import { createFastPath, type StreamHandler } from "../fast/fast-path.ts";
import { serverInterceptors } from "../interceptors/server.ts";
import { createLogger, type Logger } from "../log.ts";
import { createMetrics } from "../metrics.ts";
import { createRpcHandler } from "../rpc-handler.ts";
import { type Server, type ServerOptions, startServer } from "../server.ts";
import { type EchoTrace, echoRoutes } from "./echo.ts";

export interface EchoServerOptions {
  /** Whether the fast path is asked before the adapter. */
  fast: boolean;
  maxRequestBytes: number;
  /** Milliseconds for a request's body; half a minute when absent. */
  bodyTimeoutMs?: number;
  /** Where the handlers tell what they saw. */
  trace?: EchoTrace;
  log?: Logger;
  /** Aborts when the process drains. */
  stopping?: AbortSignal;
  /** What is served instead of the echo service. */
  routes?: (router: ConnectRouter) => void;
  /** Whether requests are held to the rules of their contract, true when absent. */
  validated?: boolean;
  /** Anything of the server that is to be otherwise. */
  server?: Partial<ServerOptions>;
}

export interface EchoServer {
  readonly server: Server;
  readonly trace: EchoTrace;
  readonly interceptors: Interceptor[];
  /** For each call that the fast path was asked about, whether it took it. */
  readonly taken: boolean[];
}

/** The echo service behind every interceptor of a service, on a port of its own. */
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
    internalSecret: "",
    publicUrl: () => "http://here",
    tracing: false,
    stopping: options.stopping ?? new AbortController().signal,
  });
  // The rules of contracts are looked at last.
  const interceptors = options.validated === false ? all.slice(0, -1) : all;
  const rpc = {
    routes: options.routes ?? echoRoutes(trace),
    interceptors,
    ...{ maxRequestBytes, bodyTimeoutMs: options.bodyTimeoutMs ?? 30_000, timers: systemTimers, log },
  };
  const taken: boolean[] = [];
  const server = await startServer({
    host: "127.0.0.1",
    port: 0,
    rpc: createRpcHandler(rpc),
    ...(fast ? { fast: noted(createFastPath(rpc), taken) } : {}),
    routes: [],
    maxConnections: 100,
    maxConcurrentStreams: 100,
    log,
    timers: systemTimers,
    ...options.server,
  });
  return { server, trace, interceptors, taken };
}

function noted(fastPath: StreamHandler, taken: boolean[]): StreamHandler {
  return (stream, headers) => {
    const took = fastPath(stream, headers);
    taken.push(took);
    return took;
  };
}
