import { once } from "node:events";
import { constants, createServer, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { ERROR_DOMAIN } from "@depute/core";
import { afterEach, describe, expect, test } from "vitest";
import { connect } from "./connect.ts";

const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close();
});

/** Starts a server that calls `serve` for each call, and returns clients that make a single attempt. */
async function servicesAt(serve: (stream: ServerHttp2Stream, socket: Socket) => void) {
  const server = createServer();
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => {
    sockets.push(socket);
    socket.on("error", () => {});
  });
  server.on("session", (session) => session.on("error", () => {}));
  server.on("stream", (stream) => {
    stream.on("error", () => {});
    stream.resume();
    const [socket] = sockets.slice(-1);
    if (socket !== undefined) serve(stream, socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const depute = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { maxOutageMs: 0 });
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  closing.push(() => depute.close());
  return depute.services;
}

const errorOf = (call: Promise<unknown>) => call.then(() => undefined, ConnectError.from);
const read = async (messages: AsyncIterable<unknown>) => {
  for await (const _ of messages);
};

describe.each<[string, (stream: ServerHttp2Stream, socket: Socket) => void]>([
  ["resets the connection", (_, socket) => void socket.resetAndDestroy()],
  ["closes the connection", (_, socket) => void socket.destroy()],
  ["ends the session", (stream) => stream.session?.destroy()],
  ["refuses the stream, because it drains", (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM)],
  ["resets the stream", (stream) => stream.close(constants.NGHTTP2_INTERNAL_ERROR)],
])("a server that %s", (_, die) => {
  test("fails a call as unavailable", async () => {
    const { tasks } = await servicesAt(die);
    expect(await errorOf(tasks.getTask({ taskId: "a" }))).toMatchObject({ code: Code.Unavailable });
  });

  test("fails a stream as unavailable", async () => {
    const { tasks } = await servicesAt(die);
    expect(await errorOf(read(tasks.watchTask({ taskId: "a" })))).toMatchObject({ code: Code.Unavailable });
  });
});

describe("a deadline that ends the attempts of a call", () => {
  test.each(["connect", "grpc"] as const)("has the last failure as its cause, over %s", async (protocol) => {
    const depute = connect("http://127.0.0.1:1", { protocol });
    closing.push(() => depute.close());
    const error = await errorOf(depute.services.tasks.getTask({ taskId: "a" }, { timeoutMs: 300 }));
    const cause = { code: Code.Unavailable, rawMessage: expect.stringContaining("ECONNREFUSED") };
    expect(error).toMatchObject({ code: Code.DeadlineExceeded, cause });
  });

  test("has no cause while the platform is silent", async () => {
    const { tasks } = await servicesAt(() => {});
    const error = await errorOf(tasks.getTask({ taskId: "a" }, { timeoutMs: 300 }));
    expect([error?.code, error?.cause]).toEqual([Code.DeadlineExceeded, undefined]);
  });
});

test.each(["connect", "grpc"] as const)(
  "a server that does not speak HTTP/2 fails a call as unavailable, and not the program, over %s",
  async (protocol) => {
    const ended = Promise.withResolvers<void>();
    const server = createTcpServer((socket) => {
      socket.on("error", () => {});
      socket.once("close", () => ended.resolve());
      socket.once("data", () => socket.end("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"));
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    closing.push(() => server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const depute = connect(url, { maxOutageMs: 0, protocol });
    const error = await errorOf(depute.services.tasks.getTask({ taskId: "a" }));
    expect(error).toMatchObject({ code: Code.Unavailable });
    // Node.js reports the error of the connection again when its socket closes. vitest fails on an uncaught error.
    depute.close();
    await ended.promise;
    await new Promise((resolve) => setImmediate(resolve));
  },
);

test("a cancelled call keeps its code", async () => {
  const leaving = new AbortController();
  const { tasks } = await servicesAt(() => leaving.abort());
  const call = tasks.getTask({ taskId: "a" }, { signal: leaving.signal });
  expect(await errorOf(call)).toMatchObject({ code: Code.Canceled });
});

test("a refusal by the platform keeps its code", async () => {
  const info = create(ErrorInfoSchema, { domain: ERROR_DOMAIN, reason: "LEASE_LOST" });
  const detail = {
    type: ErrorInfoSchema.typeName,
    value: Buffer.from(toBinary(ErrorInfoSchema, info)).toString("base64"),
  };
  const { workers } = await servicesAt((stream) => {
    stream.respond({ ":status": 409, "content-type": "application/json" });
    stream.end(JSON.stringify({ code: "aborted", message: "the lease is lost", details: [detail] }));
  });
  expect(await errorOf(workers.reportProgress({}))).toMatchObject({ code: Code.Aborted });
});
