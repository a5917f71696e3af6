import { getEventListeners } from "node:events";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { ErrorReason, systemClock, systemTimers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { createDirectTransport } from "./direct-transport.ts";
import { fromConnectError } from "./errors-on-wire.ts";
import { createLogger } from "./log.ts";
import { type EchoTrace, echoClient, echoRoutes } from "./testing/echo.ts";
import { type EchoServer, startEchoServer } from "./testing/echo-server.ts";
import { createServiceTransport } from "./transport.ts";

const lines: string[] = [];
const log = createLogger({
  level: "debug",
  name: "test",
  destination: { write: (line) => lines.push(line) },
});
const stopping = new AbortController();
const echoes: EchoServer[] = [];
const trace: EchoTrace = { started: 0, ended: [] };
const transports = new Map<string, Transport>();
const closers: (() => void)[] = [];

async function start(fast: boolean) {
  const echo = await startEchoServer({
    fast,
    trace,
    maxRequestBytes: 100_000,
    log,
    stopping: stopping.signal,
  });
  echoes.push(echo);
  const { server } = echo;
  const service = createServiceTransport(server.url, { service: "echo" });
  const foreign = createGrpcJsTransport(`127.0.0.1:${server.port}`);
  closers.push(
    () => service.close(),
    () => foreign.close(),
  );
  const { url: baseUrl } = server;
  const json = { baseUrl, useBinaryFormat: false };
  const transportsByName = {
    "Connect, HTTP/2": service,
    "Connect JSON, HTTP/2": createConnectTransport({ ...json, httpVersion: "2" }),
    "Connect JSON, HTTP/1.1": createConnectTransport({ ...json, httpVersion: "1.1" }),
    "gRPC, grpc-js": foreign,
    "gRPC, connect-node": createGrpcTransport({ baseUrl }),
    "gRPC-Web, HTTP/1.1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
    "gRPC-Web, HTTP/2": createGrpcWebTransport({ baseUrl, httpVersion: "2" }),
  };
  for (const [name, transport] of Object.entries(transportsByName)) {
    transports.set(`${name}${fast ? ", fast" : ""}`, transport);
  }
}

beforeAll(async () => {
  await start(false);
  await start(true);
  const { interceptors } = echoes[0] as EchoServer;
  const time = { clock: systemClock, timers: systemTimers };
  transports.set("direct", createDirectTransport({ ...time, routes: echoRoutes(trace), interceptors }));
});

afterAll(async () => {
  for (const close of closers) close();
  await Promise.all(echoes.map(({ server }) => server.close(100)));
});

beforeEach(() => {
  for (const { tookFastPath } of echoes) tookFastPath.length = 0;
  trace.started = 0;
  trace.ended = [];
  lines.length = 0;
});

async function failure(run: () => Promise<unknown>): Promise<ConnectError> {
  try {
    await run();
  } catch (error) {
    if (error instanceof ConnectError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

async function texts(stream: AsyncIterable<{ text: string }>): Promise<string[]> {
  const all: string[] = [];
  for await (const { text } of stream) all.push(text);
  return all;
}

describe.each([
  "direct",
  "Connect, HTTP/2",
  "Connect, HTTP/2, fast",
  "Connect JSON, HTTP/2",
  "Connect JSON, HTTP/2, fast",
  "Connect JSON, HTTP/1.1",
  "Connect JSON, HTTP/1.1, fast",
  "gRPC, grpc-js",
  "gRPC, grpc-js, fast",
  "gRPC, connect-node",
  "gRPC, connect-node, fast",
  "gRPC-Web, HTTP/1.1",
  "gRPC-Web, HTTP/2, fast",
])("a call over %s", (name) => {
  const client = () => {
    const transport = transports.get(name);
    if (transport === undefined) throw new Error(`no transport ${name}`);
    return echoClient(transport);
  };

  it("is answered, with headers and trailers", async () => {
    const header = new Headers();
    const trailer = new Headers();
    const copy = (to: Headers) => (from: Headers) => from.forEach((value, key) => void to.set(key, value));
    const answer = await client().unary(
      { text: "hello" },
      { onHeader: copy(header), onTrailer: copy(trailer), headers: { "depute-request-id": "id-1" } },
    );
    expect(answer.text).toBe("hello");
    expect(header.get("x-begin")).toBe("b");
    expect(header.get("depute-request-id")).toBe("id-1");
    expect(trailer.get("x-end")).toBe("e");
    const plain = name.endsWith(", fast") && !name.includes("Web");
    expect(echoes.flatMap(({ tookFastPath }) => tookFastPath)).toEqual(
      plain ? [true] : expect.not.arrayContaining([true]),
    );
  });

  it("sends its own headers", async () => {
    expect((await client().unary({ do: "header" }, { headers: { "x-ask": "42" } })).text).toBe("42");
  });

  it("has the caller's request id, or a new one", async () => {
    const ask = async (id: string) =>
      (await client().unary({ do: "request id" }, { headers: { "depute-request-id": id } })).text;
    expect(await ask("mine-7")).toBe("mine-7");
    expect(await ask("not sane {}")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("is refused with reason, metadata and the field at fault", async () => {
    const error = await failure(() => client().unary({ do: "refuse" }));
    expect(error.code).toBe(Code.NotFound);
    expect(error.rawMessage).toBe("no such task");
    expect(error.findDetails(ErrorInfoSchema)).toMatchObject([
      { reason: "TASK_NOT_FOUND", domain: "depute.dev", metadata: { task: "t-1" } },
    ]);
    expect(error.findDetails(BadRequestSchema)[0]?.fieldViolations).toMatchObject([
      { field: "text", description: "names no task" },
    ]);
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.TASK_NOT_FOUND,
      metadata: { task: "t-1" },
    });
  });

  it("that crashes reveals no internal text, and logs it", async () => {
    const error = await failure(() =>
      client().unary({ do: "crash" }, { headers: { "depute-request-id": "c-1" } }),
    );
    expect(error.code).toBe(Code.Internal);
    expect(error.rawMessage).toBe("internal error");
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.INTERNAL,
      metadata: { request_id: "c-1" },
    });
    expect(JSON.stringify(error.findDetails(ErrorInfoSchema))).not.toContain("secret-of-the-house");
    const line = JSON.parse(lines.find((each) => each.includes("secret-of-the-house")) ?? "{}");
    expect(line).toMatchObject({
      level: "error",
      request_id: "c-1",
      code: "INTERNAL",
      error_type: "TypeError",
    });
  });

  it("that violates a rule is refused with the field", async () => {
    for (const call of [
      () => client().unary({ text: "x".repeat(21) }),
      () => texts(client().server({ text: "x".repeat(21) })),
    ]) {
      const error = await failure(call);
      expect(error.code).toBe(Code.InvalidArgument);
      expect(fromConnectError(error)).toMatchObject({
        reason: ErrorReason.INVALID_REQUEST,
        violations: [{ field: "text", reason: "string.max_len" }],
      });
    }
    expect(trace.started).toBe(0);
  });

  it("to a method without implementation is UNKNOWN_METHOD", async () => {
    const error = await failure(() => client().missing({}));
    expect(error.code).toBe(Code.Unimplemented);
    expect(fromConnectError(error).reason).toBe(ErrorReason.UNKNOWN_METHOD);
  });

  it("ends at its deadline, also if the handler ignores the signal", async () => {
    const error = await failure(() => client().unary({ do: "hang" }, { timeoutMs: 50 }));
    expect(error.code).toBe(Code.DeadlineExceeded);
    expect(fromConnectError(error).reason).toBe(ErrorReason.DEADLINE_EXCEEDED);
  });

  it("aborts the handler when the caller disconnects", async () => {
    const abort = new AbortController();
    const call = failure(() => client().unary({ do: "wait" }, { signal: abort.signal }));
    await vi.waitFor(() => expect(trace.started).toBe(1));
    abort.abort();
    expect((await call).code).toBe(Code.Canceled);
    await vi.waitFor(() => expect(trace.ended).toEqual([{ aborted: true }]));
  });

  it("streams, with headers and trailers", async () => {
    let header: Headers | undefined;
    let trailer: Headers | undefined;
    const stream = client().server(
      { text: "n" },
      {
        onHeader(headers) {
          header = headers;
        },
        onTrailer(trailers) {
          trailer = trailers;
        },
      },
    );
    expect(await texts(stream)).toEqual(["n1", "n2", "n3"]);
    expect(header?.get("x-begin")).toBe("b");
    expect(trailer?.get("x-end")).toBe("e");
  });

  it("that streams leaves no resources when it ends, fails or is abandoned", async () => {
    const listeners = () => getEventListeners(stopping.signal, "abort").length;
    await vi.waitFor(() => expect(listeners()).toBe(0));
    await texts(client().server({ text: "n" }));
    await failure(() => texts(client().server({ do: "refuse late" })));
    const abort = new AbortController();
    await failure(async () => {
      for await (const _ of client().server({ do: "wait" }, { signal: abort.signal })) {
        expect(listeners()).toBe(1);
        abort.abort();
      }
    });
    await vi.waitFor(() => expect(listeners()).toBe(0));
  });

  it.each([
    ["refuse", []],
    ["refuse late", ["1", "2", "3"]],
  ])("that streams may be refused: %s", async (command, expected) => {
    const seen: string[] = [];
    const error = await failure(async () => {
      for await (const { text } of client().server({ do: command })) seen.push(text);
    });
    expect(seen).toEqual(expected);
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.TASK_NOT_FOUND,
      violations: [{ field: "text" }],
    });
  });

  it.each(["wait", "hang"])("that streams can be cancelled in the middle: %s", async (command) => {
    const abort = new AbortController();
    const seen: string[] = [];
    const error = await failure(async () => {
      for await (const { text } of client().server({ do: command }, { signal: abort.signal })) {
        seen.push(text);
        if (seen.length === 3) abort.abort();
      }
    });
    expect(error.code).toBe(Code.Canceled);
    expect(seen).toEqual(["1", "2", "3"]);
    if (command === "wait") await vi.waitFor(() => expect(trace.ended).toEqual([{ aborted: true }]));
  });

  it("that streams ends at the deadline that it names", async () => {
    const error = await failure(() => texts(client().server({ do: "hang" }, { timeoutMs: 100 })));
    expect(error.code).toBe(Code.DeadlineExceeded);
  });

  it("may stream its requests", async () => {
    async function* requests() {
      yield { text: "a" };
      yield { text: "b" };
    }
    expect((await client().client(requests())).text).toBe("a+b");
  });

  it("may stream both ways, turn by turn, except over HTTP/1.1", async () => {
    const answers: string[] = [];
    let more: () => void = () => {};
    async function* requests() {
      for (const text of ["a", "b"]) {
        yield { text };
        await new Promise<void>((resolve) => {
          more = resolve;
        });
      }
    }
    const talk = async () => {
      for await (const { text } of client().bidi(requests())) {
        answers.push(text);
        setImmediate(() => more());
      }
    };
    if (name.includes("HTTP/1.1")) {
      await expect(talk()).rejects.toThrow(ConnectError);
      return;
    }
    await talk();
    expect(answers).toEqual(["A", "B"]);
  });

  it("is made by the local principal, at the address of the call", async () => {
    const caller = JSON.parse((await client().unary({ do: "caller" })).text);
    expect(caller).toEqual({
      kind: "local",
      principal: "local",
      htm: "POST",
      htu: "http://here/depute.testing.EchoService/Unary",
    });
  });
});
