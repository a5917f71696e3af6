import { request as httpRequest } from "node:http";
import { connect as http2Connect } from "node:http2";
import { connect, type Socket } from "node:net";
import { BytesValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { DeputeError, ErrorReason, ManualClock, systemTimers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createDoor } from "./door.ts";
import { fromConnectError } from "./errors-on-wire.ts";
import { sendJson } from "./http-answers.ts";
import { readBody } from "./http-body.ts";
import type { HttpRoute } from "./http-routes.ts";
import { MAX_HEADER_BYTES, type Server, type ServerOptions } from "./server.ts";
import { EchoService, echoClient } from "./testing/echo.ts";
import { startEchoServer } from "./testing/echo-server.ts";

const UNARY = "/depute.testing.EchoService/Unary";
const open: Server[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close(50)));
});

const LIMITS = { maxBytes: 10, timeoutMs: 100, timers: systemTimers };
const routes: HttpRoute[] = [
  {
    methods: ["POST"],
    path: "/things/{id}",
    async handle(request, response, { id }) {
      sendJson(response, 200, { id, body: (await readBody(request, LIMITS)).toString() });
    },
  },
  {
    methods: ["GET"],
    path: "/refuse",
    async handle() {
      throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: "a" } });
    },
  },
  {
    methods: ["GET"],
    path: "/crash",
    handle() {
      throw new TypeError("secret-of-the-house");
    },
  },
];

describe.each([
  ["", false],
  [", fast path on", true],
])("a server%s", (_, withFastPath) => {
  async function start(changes: Partial<ServerOptions> = {}) {
    const stopping = new AbortController();
    const { server, trace } = await startEchoServer({
      fast: withFastPath,
      maxRequestBytes: 1000,
      stopping: stopping.signal,
      server: { routes, maxConnections: 10, ...changes },
    });
    open.push(server);
    return { server, trace, stopping };
  }

  /** Sends a request over HTTP/2 with prior knowledge; returns the response. */
  function overHttp2(
    url: string,
    headers: Record<string, string>,
    body = "",
  ): Promise<{ status: number; text: string }> {
    return new Promise((resolve, reject) => {
      const session = http2Connect(url);
      session.on("error", reject);
      const stream = session.request(headers, { endStream: body === "" });
      let status = 0;
      let text = "";
      stream.setEncoding("utf8");
      stream.on("response", (response) => {
        status = Number(response[":status"]);
      });
      stream.on("data", (chunk) => {
        text += chunk;
      });
      stream.on("error", reject);
      stream.on("end", () => {
        session.close();
        resolve({ status, text });
      });
      if (body !== "") stream.end(body);
    });
  }

  function raw(port: number): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, "127.0.0.1", () => resolve(socket));
      socket.on("error", reject);
    });
  }

  function received(socket: Socket): Promise<string> {
    return new Promise((resolve) => {
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.on("close", () => resolve(text));
    });
  }

  /** An error in the Connect protocol's JSON form. */
  interface ErrorBody {
    code: string;
    details: { debug: unknown }[];
  }

  describe("one port", () => {
    it("serves HTTP/1.1 and HTTP/2 equally", async () => {
      const { server } = await start();
      const answer = await fetch(server.url + UNARY, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: '{"text":"one"}',
      });
      expect(await answer.json()).toEqual({ text: "one" });
      const headers = { ":method": "POST", ":path": UNARY, "content-type": "application/json" };
      expect(await overHttp2(server.url, headers, '{"text":"two"}')).toEqual({
        status: 200,
        text: '{"text":"two"}',
      });
    });

    it("takes an absolute address in the request line, whose host counts", async () => {
      const door = createDoor({
        publicUrl: () => "http://127.0.0.1",
        allowedHosts: () => [],
        allowedOrigins: [],
        isOpen: true,
      });
      const { server } = await start({ door });
      const post = async (target: string, host: string, body = "{}") => {
        const socket = await raw(server.port);
        const head = `host: ${host}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${body.length}`;
        socket.write(`POST ${target} HTTP/1.1\r\n${head}\r\n\r\n${body}`);
        const answer = await received(socket);
        return [answer.slice(9, 12), answer.split("\r\n\r\n")[1]];
      };
      expect(await post(`http://localhost:1${UNARY}`, "localhost", '{"text":"one"}')).toEqual([
        "200",
        '{"text":"one"}',
      ]);
      expect(await post("HTTP://127.0.0.1/things/a?q=1", "evil.example")).toEqual([
        "200",
        '{"id":"a","body":"{}"}',
      ]);
      expect((await post(`http://evil.example${UNARY}`, "localhost"))[0]).toBe("403");
      expect((await post("http://localhost", "localhost"))[0]).toBe("404");
    });

    it("serves plain routes over both", async () => {
      const { server } = await start();
      const answer = await fetch(`${server.url}/things/a%20b?q=1`, { method: "POST", body: "hello" });
      expect(answer.status).toBe(200);
      expect(answer.headers.get("depute-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(await answer.json()).toEqual({ id: "a b", body: "hello" });
      const http2 = await overHttp2(server.url, { ":method": "POST", ":path": "/things/c" }, "x");
      expect(http2).toEqual({ status: 200, text: '{"id":"c","body":"x"}' });
    });

    it("waits for the whole preface, in any chunks", async () => {
      const { server } = await start();
      const socket = await raw(server.port);
      socket.setNoDelay(true);
      const answer = new Promise<Buffer>((resolve) => socket.once("data", resolve));
      for (const part of ["P", "RI * HT", "TP/2.0\r\n\r\nSM\r\n\r\n"]) {
        socket.write(part);
        await new Promise(setImmediate);
      }
      socket.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]));
      // Byte 3 is the type of the frame. The first frame must be SETTINGS, which is type 4.
      expect((await answer)[3]).toBe(4);
      socket.destroy();
    });

    it("reads a POST as HTTP/1.1 although it begins like the preface", async () => {
      const { server } = await start();
      const socket = await raw(server.port);
      const answer = received(socket);
      socket.write("P");
      await new Promise(setImmediate);
      socket.write("OST /nowhere HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
      expect(await answer).toMatch(/^HTTP\/1.1 404 /);
    });

    it("answers other bytes with 400", async () => {
      const { server } = await start();
      const socket = await raw(server.port);
      const answer = received(socket);
      socket.write("\x16\x03\x01 hello\r\n\r\n");
      expect(await answer).toMatch(/^HTTP\/1.1 400 /);
    });

    it("closes a silent connection", async () => {
      const timers = new ManualClock();
      const { server } = await start({ timers });
      const socket = await raw(server.port);
      const closed = received(socket);
      await vi.waitFor(() => expect(timers.pending).toBe(1));
      timers.advance(10_000);
      expect(await closed).toBe("");
    });

    it("refuses connections above the maximum", async () => {
      const { server } = await start({ maxConnections: 1 });
      const first = await raw(server.port);
      first.write("GET /no");
      await new Promise(setImmediate);
      const second = await raw(server.port);
      expect(await received(second)).toBe("");
      first.destroy();
    });
  });

  describe("a wrong request", () => {
    it.each([
      ["/nowhere", "GET", 404, "UNKNOWN_METHOD"],
      ["/depute.testing.EchoService/Nothing", "POST", 404, "UNKNOWN_METHOD"],
      ["/refuse", "POST", 405, "UNKNOWN_METHOD"],
      ["/refuse", "GET", 404, "AGENT_NOT_FOUND"],
      ["/crash", "GET", 500, "INTERNAL"],
      ["/things/%ff", "POST", 404, "UNKNOWN_METHOD"],
    ])("%s by %s is %i %s", async (path, method, status, reason) => {
      const { server } = await start();
      const answer = await fetch(server.url + path, { method });
      expect(answer.status).toBe(status);
      expect(answer.headers.get("content-type")).toBe("application/json");
      const text = await answer.text();
      expect(JSON.parse(text).details[0].debug.reason).toBe(reason);
      expect(text).not.toContain("secret-of-the-house");
      if (status === 405) expect(answer.headers.get("allow")).toBe("GET, HEAD");
      const next = await fetch(server.url + UNARY, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: "{}",
      });
      expect(next.status).toBe(200);
    });

    it("with a body that is too long is refused, whatever its stated length", async () => {
      const { server } = await start();
      const long = await fetch(`${server.url}/things/a`, { method: "POST", body: "x".repeat(11) });
      expect(long.status).toBe(413);
      expect(((await long.json()) as ErrorBody).details[0]?.debug).toMatchObject({
        reason: "LIMIT_EXCEEDED",
      });
      const chunked = await overHttp2(
        server.url,
        { ":method": "POST", ":path": "/things/a" },
        "x".repeat(11),
      );
      expect(chunked.status).toBe(413);
    });

    it("with a header that is too long is refused, one within the limit is served", async () => {
      const { server } = await start();
      const ask = (bytes: number) =>
        new Promise<number>((resolve, reject) => {
          const request = httpRequest(`${server.url}/refuse`, {
            headers: { authorization: "x".repeat(bytes) },
          });
          request.on("response", (response) => {
            response.resume();
            resolve(response.statusCode ?? 0);
          });
          request.on("error", reject);
          request.end();
        });
      expect(await ask(MAX_HEADER_BYTES - 1000)).toBe(404);
      expect(await ask(MAX_HEADER_BYTES + 1)).toBe(431);
      const overTwo = (bytes: number) =>
        overHttp2(server.url, { ":path": "/refuse", authorization: "x".repeat(bytes) }).then(
          ({ status }) => status,
          (error) => String(error),
        );
      expect(await overTwo(MAX_HEADER_BYTES - 1000)).toBe(404);
      expect(await overTwo(MAX_HEADER_BYTES + 1)).toBe(431);
    });

    const transports = {
      "Connect, binary": (server: Server) =>
        createConnectTransport({ baseUrl: server.url, httpVersion: "2" }),
      "Connect, JSON": (server: Server) =>
        createConnectTransport({ baseUrl: server.url, httpVersion: "1.1", useBinaryFormat: false }),
      "gRPC, connect-node": (server: Server) => createGrpcTransport({ baseUrl: server.url }),
      "gRPC, grpc-js": (server: Server) => createGrpcJsTransport(`127.0.0.1:${server.port}`),
    };

    it.each(Object.entries(transports))(
      "with a message that is too long has its reason over %s",
      async (_, transport) => {
        const { server } = await start();
        const error = await echoClient(transport(server))
          .unary({ do: "x".repeat(2000) })
          .catch((caught: unknown) => caught);
        expect(error).toBeInstanceOf(ConnectError);
        expect((error as ConnectError).code).toBe(Code.ResourceExhausted);
        expect((error as ConnectError).details).toHaveLength(1);
        expect(fromConnectError(error).reason).toBe(ErrorReason.LIMIT_EXCEEDED);
      },
    );

    it.each([
      ["application/json", "{"],
      ["application/json", '{"text":1}'],
      ["application/proto", "\x0a\x7f"],
    ])("with a body that is not a message has its reason: %s %j", async (type, body) => {
      const { server } = await start();
      const answer = await fetch(server.url + UNARY, {
        method: "POST",
        headers: { "content-type": type },
        body,
      });
      expect(answer.status).toBe(400);
      const { code, details } = (await answer.json()) as ErrorBody;
      expect(code).toBe("invalid_argument");
      expect(details[0]?.debug).toMatchObject({ reason: "INVALID_REQUEST", domain: "depute.dev" });
    });

    it("with a body that is not a message has its reason over gRPC", async () => {
      const { server } = await start();
      const transport = createGrpcJsTransport(`127.0.0.1:${server.port}`);
      const { unary, server: streaming } = EchoService.method;
      // The client sends a message whose field has bytes where EchoRequest has a text, so that the text is not valid
      // UTF-8.
      const wrong = (method: object) => ({ ...method, input: BytesValueSchema }) as never;
      const garbage = { value: Uint8Array.of(0xff) };
      const errors = [
        await transport
          .unary(wrong(unary), undefined, undefined, undefined, garbage)
          .catch((caught: unknown) => caught),
        await (async () => {
          const stream = transport.stream(wrong(streaming), undefined, undefined, undefined, once(garbage));
          for await (const _ of (await stream).message);
        })().catch((caught: unknown) => caught),
      ];
      transport.close();
      for (const error of errors) {
        expect((error as ConnectError).code).toBe(Code.InvalidArgument);
        expect(fromConnectError(error).reason).toBe(ErrorReason.INVALID_REQUEST);
      }
    });

    it("to an unknown method has its reason over gRPC", async () => {
      const { server } = await start();
      const transport = createGrpcJsTransport(`127.0.0.1:${server.port}`);
      const stranger = { ...EchoService.method.unary, name: "Nothing" };
      const error = await transport
        .unary(stranger as never, undefined, undefined, undefined, {})
        .catch((caught: unknown) => caught);
      transport.close();
      expect((error as ConnectError).code).toBe(Code.Unimplemented);
      expect(fromConnectError(error)).toMatchObject({
        reason: ErrorReason.UNKNOWN_METHOD,
        metadata: { method: "/depute.testing.EchoService/Nothing" },
      });
    });
  });

  describe("draining", () => {
    it("ends streams with SHUTTING_DOWN, lets unary calls finish, and takes no more connections", async () => {
      const { server, trace, stopping } = await start();
      const transport = createConnectTransport({ baseUrl: server.url, httpVersion: "2" });
      const client = echoClient(transport);
      const seen: string[] = [];
      const stream = (async () => {
        for await (const { text } of client.server({ do: "hang" })) seen.push(text);
      })().catch((caught: unknown) => caught);
      const release = new AbortController();
      const unary = client
        .unary({ do: "wait", text: "x" }, { signal: release.signal })
        .catch((caught: unknown) => caught);
      const slow = fetch(`${server.url}/things/slow`, { method: "POST", body: "x" });
      await vi.waitFor(() => expect(trace.started).toBe(2));
      await vi.waitFor(() => expect(seen).toHaveLength(3));

      stopping.abort();
      const closing = server.close(30_000);
      const ended = await stream;
      expect((ended as ConnectError).code).toBe(Code.Unavailable);
      expect(fromConnectError(ended).reason).toBe(ErrorReason.SHUTTING_DOWN);
      expect((await slow).status).toBe(200);
      await expect(fetch(server.url)).rejects.toThrow();
      expect(trace.ended).toEqual([]);
      release.abort();
      await unary;
      await closing;
    });

    it("ends calls that do not end in time", async () => {
      const timers = new ManualClock();
      const { server, trace } = await start({ timers });
      const client = echoClient(createConnectTransport({ baseUrl: server.url, httpVersion: "2" }));
      const call = client.unary({ do: "hang" }).catch((caught: unknown) => caught);
      await vi.waitFor(() => expect(trace.started).toBe(1));
      const closing = server.close(5000);
      timers.advance(5000);
      await closing;
      expect(await call).toBeInstanceOf(ConnectError);
    });
  });
});

async function* once<T>(item: T) {
  yield item;
}
