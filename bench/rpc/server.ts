import { createHash } from "node:crypto";
import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, fromBinary, type MessageShape, toBinary } from "@bufbuild/protobuf";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { systemClock, systemTimers } from "@depute/core";
import {
  createFastPath,
  createLogger,
  createMetrics,
  createRpcHandler,
  NO_INTERNAL_SECRETS,
  parseCredentials,
  serverInterceptors,
  startServer,
} from "@depute/service";
import * as grpc from "@grpc/grpc-js";
import { PING_PATH, PingService, pingRoutes } from "./contract.ts";
import { type Kind, SECRET } from "./load.ts";

/**
 * Runs one of the compared servers in a separate process, so that its CPU time can be measured. The argument is the
 * server's name. The process reports its port. It answers each message with its CPU time so far, in microseconds.
 */

type Ping = MessageShape<typeof PingService.method.ping.input>;

const START: Record<Kind, () => Promise<number>> = {
  "grpc-js": startGrpcJs,
  http2: startHttp2,
  "connect-node": startConnectNode,
  adapter: () => startDepute({ fast: false }),
  fast: () => startDepute({ fast: true }),
  known: () => startDepute({ fast: true, credentials: credentialOf(SECRET) }),
};
const port = await START[process.argv[2] as Kind]();
process.on("message", () => process.send?.({ cpu: process.cpuUsage() }));
process.on("disconnect", () => process.exit());
process.send?.({ port });

/** Starts the reference: the unmodified server of @grpc/grpc-js, with the same codec and without validation. */
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

/**
 * Starts the limit: node:http2 with the same codec, for gRPC alone. It reads no header, checks nothing, and expects one
 * message that is not compressed.
 */
function startHttp2(): Promise<number> {
  const { input, output } = PingService.method.ping;
  // The length of gRPC's prefix of a message: one byte of flags, and four of the message's length.
  const prefix = 5;
  const server = createServer();
  server.on("stream", (stream) => {
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      fromBinary(input, Buffer.concat(chunks).subarray(prefix));
      const answer = toBinary(output, create(output));
      const frame = Buffer.alloc(prefix + answer.length);
      frame.writeUInt32BE(answer.length, 1);
      frame.set(answer, prefix);
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
      stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
      stream.end(frame);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

/** Starts a second reference: the unmodified adapter of connect-node, without interceptors. */
function startConnectNode(): Promise<number> {
  const server = createServer(connectNodeAdapter({ routes: pingRoutes }));
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
  });
}

/** Returns the credentials file of one caller. */
function credentialOf(secret: string): string {
  return JSON.stringify([{ principal: "bench", sha256: createHash("sha256").update(secret).digest("hex") }]);
}

/**
 * Starts Depute's server with every interceptor of a service. As by default, calls that succeed are not logged.
 *
 * @param credentials the credentials file; with it, every call has to present a secret
 */
async function startDepute({ fast, credentials }: { fast: boolean; credentials?: string }): Promise<number> {
  const log = createLogger({ level: "info", name: "bench" });
  const interceptors = serverInterceptors({
    log,
    metrics: createMetrics(),
    clock: systemClock,
    timers: systemTimers,
    defaultDeadline: 30_000,
    maxDeadline: 300_000,
    auth: credentials === undefined ? "open" : "required",
    credentials: parseCredentials(credentials ?? "[]"),
    internalSecrets: NO_INTERNAL_SECRETS,
    reach: { publicUrl: "http://127.0.0.1" },
    tracing: false,
    stopping: new AbortController().signal,
  });
  const bodies = {
    maxRequestBytes: 4_194_304,
    bodyTimeoutMs: 30_000,
    clock: systemClock,
    timers: systemTimers,
  };
  const rpc = { routes: pingRoutes, interceptors, ...bodies, log };
  const server = await startServer({
    place: { host: "127.0.0.1", port: 0 },
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
