import { once } from "node:events";
import { constants, createServer, type ServerHttp2Stream } from "node:http2";
import type { Socket } from "node:net";
import { createClient, type Transport } from "@connectrpc/connect";
import { ErrorReason, systemClock, systemTimers } from "@depute/core";
import { afterEach, describe, expect, test } from "vitest";
import { createDirectTransport } from "./direct-transport.ts";
import { fromConnectError, toConnectError } from "./errors-on-wire.ts";
import { errorsInterceptor } from "./interceptors/server.ts";
import { EchoService } from "./testing/echo.ts";
import { createServiceTransport } from "./transport.ts";

/** Ends the stream of a call, or the call's connection, as a dying peer does. */
type Death = (stream: ServerHttp2Stream, socket: Socket) => void;

const RESETS = [
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "STREAM_CLOSED",
  "REFUSED_STREAM",
  "CANCEL",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

const DEATHS: readonly [string, Death][] = [
  ["resets the connection", (_, socket) => void socket.resetAndDestroy()],
  ["ends the connection", (_, socket) => void socket.end()],
  ["ends the session", (stream) => stream.session?.destroy()],
  ["sends GOAWAY and ends", (stream) => stream.session?.destroy(undefined, constants.NGHTTP2_NO_ERROR)],
  [
    "sends GOAWAY with an error and ends",
    (stream) => stream.session?.destroy(undefined, constants.NGHTTP2_INTERNAL_ERROR),
  ],
  ["does not write HTTP/2", (_, socket) => void socket.end("HTTP/1.1 400 Bad Request\r\n\r\n")],
  ...RESETS.map((name): [string, Death] => [
    `resets the stream with ${name}`,
    (stream) => stream.close(constants[`NGHTTP2_${name}`]),
  ]),
  ...(["application/proto", "application/connect+proto"] as const).flatMap((type): [string, Death][] => {
    // The first part of a message of 32 bytes.
    const half = Buffer.from(type === "application/proto" ? [0x0a, 0x20, 1, 2] : [0, 0, 0, 0, 32, 0x0a]);
    const begin = (stream: ServerHttp2Stream, then: () => void) => {
      stream.respond({ ":status": 200, "content-type": type });
      stream.write(half, then);
    };
    return [
      [
        `resets the connection in the middle of ${type}`,
        (stream, socket) => begin(stream, () => socket.resetAndDestroy()),
      ],
      [`ends the stream in the middle of ${type}`, (stream) => begin(stream, () => stream.end())],
      [
        `resets the stream in the middle of ${type}`,
        (stream) => begin(stream, () => stream.close(constants.NGHTTP2_CANCEL)),
      ],
    ];
  }),
];

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/**
 * Starts a peer, and returns a transport to it. During each call, `die` ends the call's stream or its connection.
 */
async function dyingPeer(die: Death): Promise<Transport> {
  const server = createServer();
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
  });
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.resume();
    const socket = [...sockets].at(-1);
    if (socket !== undefined) setImmediate(() => stream.session && die(stream, socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  const transport = createServiceTransport(`http://127.0.0.1:${port}`, { service: "echo" });
  closing.push(() => {
    transport.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return transport;
}

/** Returns a transport to a service that forwards its calls to the dying peer, as the gateway does. */
function forwarded(transport: Transport): Transport {
  const echo = createClient(EchoService, transport);
  return createDirectTransport({
    clock: systemClock,
    timers: systemTimers,
    interceptors: [errorsInterceptor()],
    routes: (router) =>
      router.service(EchoService, {
        unary: (request, { signal }) => echo.unary(request, { signal }),
        server: (request, { signal }) => echo.server(request, { signal }),
      }),
  });
}

const GONE = { reason: ErrorReason.DEPENDENCY_UNAVAILABLE, metadata: { service: "echo" } };
const errorOf = async (call: Promise<unknown>) =>
  fromConnectError(
    await call.then(
      () => "answered",
      (error: unknown) => error,
    ),
  );
const read = async (messages: AsyncIterable<unknown>) => {
  for await (const _ of messages);
};

describe.each(DEATHS)("a peer that %s", (_, die) => {
  test("fails a call as unavailable", async () => {
    const { unary } = createClient(EchoService, await dyingPeer(die));
    expect(await errorOf(unary({}))).toMatchObject(GONE);
  });

  test("fails a stream as unavailable", async () => {
    const { server } = createClient(EchoService, await dyingPeer(die));
    expect(await errorOf(read(server({})))).toMatchObject(GONE);
  });

  test("fails calls through another service as unavailable", async () => {
    const { unary, server } = createClient(EchoService, forwarded(await dyingPeer(die)));
    expect(await errorOf(unary({}))).toMatchObject(GONE);
    expect(await errorOf(read(server({})))).toMatchObject(GONE);
  });
});

test("a call that its caller aborts is cancelled, however its peer ends", async () => {
  const { unary } = createClient(EchoService, await dyingPeer(() => {}));
  const caller = new AbortController();
  const call = unary({}, { signal: caller.signal });
  setImmediate(() => caller.abort());
  await expect(call).rejects.toMatchObject({ code: 1 });
  expect(toConnectError(await call.catch((error: unknown) => error)).code).toBe(1);
});

test("a call at its caller's deadline is DEADLINE_EXCEEDED", async () => {
  const { unary } = createClient(EchoService, await dyingPeer(() => {}));
  expect(await errorOf(unary({}, { timeoutMs: 30 }))).toMatchObject({
    reason: ErrorReason.DEADLINE_EXCEEDED,
  });
});
