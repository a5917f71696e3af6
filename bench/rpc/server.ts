import { fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { systemClock, systemTimers } from "@depute/core";
import {
  createFastPath,
  createLogger,
  createMetrics,
  createRpcHandler,
  parseCredentials,
  serverInterceptors,
  startServer,
} from "@depute/service";
import * as grpc from "@grpc/grpc-js";
import { PING_PATH, PingService, pingRoutes } from "./contract.ts";

/**
 * One of the servers that are compared, as a process of its own so that its CPU time is its own. Started with its name;
 * tells its port, then answers each message with the CPU time that it has used, in microseconds.
 */

type Ping = MessageShape<typeof PingService.method.ping.input>;

const kind = process.argv[2];
const port = kind === "grpc-js" ? await startGrpcJs() : await startDepute(kind === "fast");
process.on("message", () => process.send?.({ cpu: process.cpuUsage() }));
process.on("disconnect", () => process.exit());
process.send?.({ port });

/** The yardstick: the server of @grpc/grpc-js as it comes, with the same codec and no validation. */
function startGrpcJs(): Promise<number> {
  const { input, output } = PingService.method.ping;
  const server = new grpc.Server();
  server.addService(
    {
      ping: {
        path: PING_PATH,
        requestStream: false,
        responseStream: false,
        requestDeserialize: (bytes: Buffer) => fromBinary(input, bytes),
        requestSerialize: (message: Ping) => Buffer.from(toBinary(input, message)),
        responseDeserialize: (bytes: Buffer) => fromBinary(output, bytes),
        responseSerialize: (message: Ping) => Buffer.from(toBinary(output, message)),
      },
    },
    {
      ping: (_call: unknown, callback: grpc.sendUnaryData<unknown>) =>
        callback(null, { $typeName: "depute.bench.Ping", text: "" }),
    },
  );
  return new Promise((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error ? reject(error) : resolve(bound),
    );
  });
}

/** Depute's server with every interceptor that a service has; its log is off for calls that succeed, as by default. */
async function startDepute(fast: boolean): Promise<number> {
  const log = createLogger({ level: "info", name: "bench" });
  const interceptors = serverInterceptors({
    log,
    metrics: createMetrics(),
    clock: systemClock,
    timers: systemTimers,
    defaultDeadline: 30_000,
    maxDeadline: 300_000,
    auth: "open",
    credentials: parseCredentials("[]"),
    internalSecret: "",
    publicUrl: () => "http://127.0.0.1",
    tracing: false,
    stopping: new AbortController().signal,
  });
  const bodies = { maxRequestBytes: 4_194_304, bodyTimeoutMs: 30_000, timers: systemTimers };
  const rpc = { routes: pingRoutes, interceptors, ...bodies, log };
  const server = await startServer({
    host: "127.0.0.1",
    port: 0,
    rpc: createRpcHandler(rpc),
    ...(fast ? { fast: createFastPath(rpc) } : {}),
    routes: [],
    maxConnections: 1000,
    maxConcurrentStreams: 1000,
    log,
    timers: systemTimers,
  });
  return server.port;
}
