import { type ClientHttp2Session, connect, constants } from "node:http2";
import { gunzipSync, gzipSync } from "node:zlib";
import { toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test, vi } from "vitest";
import { createLogger } from "../log.ts";
import { MAX_HEADER_BYTES } from "../server.ts";
import { EchoService, FLOOD } from "../testing/echo.ts";
import { type EchoServer, startEchoServer } from "../testing/echo-server.ts";
import { exchange, type RawAnswer, type RawRequest } from "../testing/exchange.ts";

/**
 * Maximum size of a request to both servers, in bytes. The tests compare the fast path with Connect's adapter: both
 * must send the same bytes for every response.
 */

const MAX_BYTES = 1000;
const lines: string[] = [];
const log = createLogger({
  level: "info",
  name: "test",
  destination: { write: (line) => lines.push(line) },
});
const echoes: EchoServer[] = [];
const sessions: ClientHttp2Session[] = [];
const fastEcho = () => echoes[1] as EchoServer;

beforeAll(async () => {
  for (const fast of [false, true]) {
    const echo = await startEchoServer({ fast, maxRequestBytes: MAX_BYTES, log });
    echoes.push(echo);
    sessions.push(connect(echo.server.url).on("error", () => {}));
  }
});

afterAll(async () => {
  for (const session of sessions) session.close();
  await Promise.all(echoes.map(({ server }) => server.close(100)));
});

beforeEach(() => {
  lines.length = 0;
  const { tookFastPath, trace } = fastEcho();
  tookFastPath.length = 0;
  trace.started = 0;
  trace.sent = 0;
  trace.ended = [];
});

/** Sends a request to both servers, and returns the responses of the adapter and of the fast path. */
async function both(request: RawRequest, to = sessions): Promise<RawAnswer[]> {
  return (await Promise.all(to.map((session) => exchange(session, request)))).map(withoutChance);
}

/**
 * Removes the fields that may differ: the date, and the encoding header of a message that is not compressed. Only the
 * adapter sends this header.
 */
function withoutChance({ headers, body, trailers }: RawAnswer): RawAnswer {
  const { date: _, ...rest } = headers;
  if (Buffer.from(body, "base64")[0] !== 1) delete rest["grpc-encoding"];
  return { headers: rest, body, trailers };
}

const UNARY = "/depute.testing.EchoService/Unary";
const SERVER = "/depute.testing.EchoService/Server";

function message(fields: { text?: string; do?: string }): Uint8Array {
  return toBinary(EchoService.method.unary.input, {
    $typeName: "depute.testing.EchoRequest",
    text: "",
    do: "",
    ...fields,
  });
}

const hello = message({ text: "hello" });
const framed = encodeEnvelope(0, hello);
// The client sets the call's id, because each server would otherwise create a different id.
const common = { ":path": UNARY, "depute-request-id": "r-1" };
const bytes = (...all: number[]) => Uint8Array.from(all);
const utf8 = (text: string) => Buffer.from(text);
const grpc = (headers: Record<string, string> = {}) => ({
  "content-type": "application/grpc",
  te: "trailers",
  ...common,
  ...headers,
});
const proto = (headers: Record<string, string> = {}) => ({
  "content-type": "application/proto",
  ...common,
  ...headers,
});
const json = (headers: Record<string, string> = {}) => ({
  "content-type": "application/json",
  ...common,
  ...headers,
});
const ask = (command: string) => [encodeEnvelope(0, message({ do: command }))];

const FAST = true;
const ADAPTER = false;
const cases: [name: string, request: RawRequest, fast: boolean, answer: string | number][] = [
  // Plain requests, which the fast path serves.
  ["gRPC", { headers: grpc(), body: [framed] }, FAST, "0"],
  [
    "gRPC by its longer content type",
    { headers: grpc({ "content-type": "application/grpc+proto" }), body: [framed] },
    FAST,
    "0",
  ],
  ["gRPC byte by byte", { headers: grpc(), body: [...framed].map((each) => bytes(each)) }, FAST, "0"],
  ["gRPC, identity", { headers: grpc({ "grpc-encoding": "identity" }), body: [framed] }, FAST, "0"],
  ["gRPC, an empty message", { headers: grpc(), body: [bytes(0, 0, 0, 0, 0)] }, FAST, "0"],
  ["gRPC with a timeout", { headers: grpc({ "grpc-timeout": "10S" }), body: [framed] }, FAST, "0"],
  ["Connect, binary", { headers: proto(), body: [hello] }, FAST, 200],
  ["Connect, an empty message", { headers: proto() }, FAST, 200],
  ["Connect, JSON", { headers: json(), body: [utf8('{"text":'), utf8('"a"}')] }, FAST, 200],
  ["Connect, an unknown field", { headers: json(), body: [utf8('{"x":1}')] }, FAST, 200],
  [
    "Connect with a timeout",
    { headers: json({ "connect-timeout-ms": "9000" }), body: [utf8("{}")] },
    FAST,
    200,
  ],
  [
    "Connect with a content length",
    { headers: proto({ "content-length": String(hello.length) }), body: [hello] },
    FAST,
    200,
  ],
  ["Connect, identity", { headers: proto({ "content-encoding": "identity" }), body: [hello] }, FAST, 200],

  // Requests to server-streaming methods.
  ["gRPC, a stream", { headers: grpc({ ":path": SERVER }), body: [framed] }, FAST, "0"],
  [
    "gRPC, a stream to a client that accepts compression",
    { headers: grpc({ ":path": SERVER, "grpc-accept-encoding": "gzip" }), body: [framed] },
    FAST,
    "0",
  ],
  ["gRPC, a stream, refused", { headers: grpc({ ":path": SERVER }), body: ask("refuse") }, FAST, "5"],
  [
    "gRPC, a stream, refused in the middle",
    { headers: grpc({ ":path": SERVER }), body: ask("refuse late") },
    FAST,
    "5",
  ],
  [
    "gRPC, a stream, an invalid field",
    { headers: grpc({ ":path": SERVER }), body: [encodeEnvelope(0, message({ text: "x".repeat(21) }))] },
    FAST,
    "3",
  ],
  [
    "gRPC, a stream, past its deadline",
    { headers: grpc({ ":path": SERVER, "grpc-timeout": "0n" }), body: [framed] },
    FAST,
    "4",
  ],
  [
    "gRPC, a stream with a timeout",
    { headers: grpc({ ":path": SERVER, "grpc-timeout": "300m" }), body: ask("wait") },
    FAST,
    "4",
  ],
  ["gRPC, a stream, no body", { headers: grpc({ ":path": SERVER }) }, FAST, "12"],
  [
    "gRPC, a stream, two messages",
    { headers: grpc({ ":path": SERVER }), body: [framed, framed] },
    FAST,
    "12",
  ],
  [
    "gRPC, a stream, half of a message",
    { headers: grpc({ ":path": SERVER }), body: [framed.subarray(0, 8)] },
    FAST,
    "3",
  ],
  [
    "gRPC, a stream, two kinds of credentials",
    { headers: grpc({ ":path": SERVER, "x-api-key": "a", dpop: "b" }), body: [framed] },
    FAST,
    "16",
  ],

  // Requests that are refused.
  ["gRPC, refused", { headers: grpc(), body: ask("refuse") }, FAST, "5"],
  ["gRPC, crashed", { headers: grpc(), body: ask("crash") }, FAST, "13"],
  [
    "gRPC, an invalid field",
    { headers: grpc(), body: [encodeEnvelope(0, message({ text: "x".repeat(21) }))] },
    FAST,
    "3",
  ],
  ["gRPC, past its deadline", { headers: grpc({ "grpc-timeout": "0n" }), body: [framed] }, FAST, "4"],
  [
    "gRPC, two kinds of credentials",
    { headers: grpc({ "x-api-key": "a", dpop: "b" }), body: [framed] },
    FAST,
    "16",
  ],
  [
    "gRPC, no implementation",
    { headers: grpc({ ":path": "/depute.testing.EchoService/Missing" }), body: [framed] },
    FAST,
    "12",
  ],
  ["Connect, refused", { headers: proto(), body: [message({ do: "refuse" })] }, FAST, 404],
  ["Connect, crashed", { headers: json(), body: [utf8('{"do":"crash"}')] }, FAST, 500],
  ["Connect, an invalid field", { headers: proto(), body: [message({ text: "x".repeat(21) })] }, FAST, 400],
  ["Connect, past its deadline", { headers: proto({ "connect-timeout-ms": "0" }), body: [hello] }, FAST, 504],
  [
    "Connect, no implementation",
    { headers: proto({ ":path": "/depute.testing.EchoService/Missing" }) },
    FAST,
    501,
  ],

  // Requests whose body the fast path must pass to the adapter or refuse.
  ["gRPC, no body", { headers: grpc() }, FAST, "12"],
  ["gRPC, half of a prefix", { headers: grpc(), body: [framed.subarray(0, 3)] }, FAST, "3"],
  ["gRPC, no message after the prefix", { headers: grpc(), body: [framed.subarray(0, 5)] }, FAST, "12"],
  ["gRPC, half of a message", { headers: grpc(), body: [framed.subarray(0, 8)] }, FAST, "3"],
  ["gRPC, a byte too many", { headers: grpc(), body: [framed, bytes(0)] }, FAST, "3"],
  ["gRPC, two messages", { headers: grpc(), body: [framed, framed] }, FAST, "12"],
  ["gRPC, two messages at once", { headers: grpc(), body: [Buffer.concat([framed, framed])] }, FAST, "12"],
  ["gRPC, compressed without an encoding", { headers: grpc(), body: [encodeEnvelope(1, hello)] }, FAST, "13"],
  ["gRPC, an unknown flag", { headers: grpc(), body: [encodeEnvelope(2, hello)] }, FAST, "0"],
  [
    "gRPC, bytes that are not a message",
    { headers: grpc(), body: [encodeEnvelope(0, bytes(0x0a, 0x7f))] },
    FAST,
    "3",
  ],
  [
    "gRPC, text that is not UTF-8",
    { headers: grpc(), body: [encodeEnvelope(0, bytes(0x0a, 1, 0xff))] },
    FAST,
    "3",
  ],
  [
    "gRPC, as long as the limit",
    { headers: grpc(), body: [encodeEnvelope(0, message({ do: "x".repeat(MAX_BYTES - 3) }))] },
    FAST,
    "0",
  ],
  [
    "gRPC, too long",
    { headers: grpc(), body: [encodeEnvelope(0, new Uint8Array(MAX_BYTES + 1))] },
    FAST,
    "8",
  ],
  ["gRPC, claims 4 GiB", { headers: grpc(), body: [bytes(0, 255, 255, 255, 255)], open: true }, FAST, "8"],
  [
    "gRPC, too long and without an end",
    { headers: grpc(), body: [bytes(0, 0, 1, 0, 0), new Uint8Array(5000)], open: true },
    FAST,
    "8",
  ],
  ["Connect, too long", { headers: proto(), body: [new Uint8Array(MAX_BYTES + 1)] }, FAST, 413],
  [
    "Connect, too long and without an end",
    { headers: proto(), body: [new Uint8Array(900), new Uint8Array(900)], open: true },
    FAST,
    413,
  ],
  ["Connect, bytes that are not a message", { headers: proto(), body: [bytes(0x0a, 0x7f)] }, FAST, 400],
  ["Connect, malformed JSON", { headers: json(), body: [utf8("{")] }, FAST, 400],
  ["Connect, another JSON", { headers: json(), body: [utf8('{"text":1}')] }, FAST, 400],
  ["Connect, no body for JSON", { headers: json() }, FAST, 400],

  // Requests whose head shows that the adapter must serve them.
  [
    "gRPC, compressed",
    { headers: grpc({ "grpc-encoding": "gzip" }), body: [encodeEnvelope(1, gzipSync(hello))] },
    ADAPTER,
    "0",
  ],
  [
    "gRPC, an unknown encoding",
    { headers: grpc({ "grpc-encoding": "snappy" }), body: [framed] },
    ADAPTER,
    "12",
  ],
  [
    "gRPC in JSON",
    { headers: grpc({ "content-type": "application/grpc+json" }), body: [encodeEnvelope(0, utf8("{}"))] },
    ADAPTER,
    "0",
  ],
  [
    "gRPC in capitals",
    { headers: grpc({ "content-type": "Application/GRPC" }), body: [framed] },
    ADAPTER,
    "0",
  ],
  ["gRPC, a malformed timeout", { headers: grpc({ "grpc-timeout": "soon" }), body: [framed] }, ADAPTER, "3"],
  [
    "gRPC-Web",
    { headers: grpc({ "content-type": "application/grpc-web+proto" }), body: [framed] },
    ADAPTER,
    200,
  ],
  [
    "Connect, a stream",
    { headers: proto({ ":path": SERVER, "content-type": "application/connect+proto" }), body: [framed] },
    ADAPTER,
    200,
  ],
  ["gRPC by GET", { headers: grpc({ ":method": "GET" }) }, ADAPTER, 405],
  [
    "gRPC, an unknown method",
    { headers: grpc({ ":path": "/depute.testing.EchoService/Nothing" }), body: [framed] },
    ADAPTER,
    "12",
  ],
  ["gRPC, a path with a query", { headers: grpc({ ":path": `${UNARY}?a=b` }), body: [framed] }, ADAPTER, "0"],
  [
    "Connect, compressed",
    { headers: proto({ "content-encoding": "gzip" }), body: [gzipSync(hello)] },
    ADAPTER,
    200,
  ],
  [
    "Connect, an unknown encoding",
    { headers: proto({ "content-encoding": "br" }), body: [hello] },
    ADAPTER,
    501,
  ],
  [
    "Connect, a content length beyond the limit",
    { headers: proto({ "content-length": "1001" }), body: [new Uint8Array(1001)] },
    ADAPTER,
    413,
  ],
  [
    "Connect, a malformed timeout",
    { headers: proto({ "connect-timeout-ms": "-1" }), body: [hello] },
    ADAPTER,
    400,
  ],
  [
    "Connect with a charset",
    { headers: json({ "content-type": "application/json; charset=utf-8" }), body: [utf8("{}")] },
    ADAPTER,
    200,
  ],
  [
    "Connect, a stream's type",
    { headers: proto({ "content-type": "application/connect+proto" }), body: [framed] },
    ADAPTER,
    415,
  ],
  ["no content type", { headers: common, body: [hello] }, ADAPTER, 415],
  [
    "an unknown content type",
    { headers: { ...common, "content-type": "text/plain" }, body: [hello] },
    ADAPTER,
    415,
  ],
  ["by PUT", { headers: proto({ ":method": "PUT" }), body: [hello] }, ADAPTER, 405],
  ["with Expect: 100-continue", { headers: proto({ expect: "100-continue" }), body: [hello] }, ADAPTER, 200],
];

describe("the fast path and the adapter give equal answers", () => {
  it.each(cases)("%s", async (_, request, fast, expected) => {
    const [reference, answer] = await both(request);
    expect(answer).toEqual(reference);
    expect(
      answer?.trailers["grpc-status"] ?? answer?.headers["grpc-status"] ?? answer?.headers[":status"],
    ).toBe(expected);
    expect(fastEcho().tookFastPath).toEqual([fast]);
  });

  it("to long answers, compressed for clients that accept it", async () => {
    const long = "long ".repeat(2000).trim();
    const longHeader = { "x-ask": long };
    for (const [request, at] of [
      [
        {
          headers: grpc({ ...longHeader, "grpc-accept-encoding": "identity,deflate,gzip" }),
          body: ask("header"),
        },
        5,
      ],
      [
        { headers: json({ ...longHeader, "accept-encoding": "br, gzip" }), body: [utf8('{"do":"header"}')] },
        0,
      ],
    ] as const) {
      const [reference, answer] = await both(request);
      expect(answer).toEqual(reference);
      expect(gunzipSync(Buffer.from(answer?.body ?? "", "base64").subarray(at)).toString()).toContain(long);
    }
    expect(fastEcho().tookFastPath).toEqual([true, true]);
    const plain = { headers: grpc(longHeader), body: ask("header") };
    const [reference, answer] = await both(plain);
    expect(answer).toEqual(reference);
    expect(Buffer.from(answer?.body ?? "", "base64").toString()).toContain(long);
  });

  it("to headers beyond the limit, which no handler gets", async () => {
    // The test needs a new connection: once the settings are exchanged, HTTP/2 itself resets such a stream.
    const headers = { "content-type": "application/grpc", authorization: "x".repeat(MAX_HEADER_BYTES) };
    const fresh = echoes.map(({ server }) => connect(server.url));
    const [reference, answer] = await both(
      { headers: { ":path": UNARY, ...headers }, body: [framed] },
      fresh,
    );
    for (const session of fresh) session.close();
    expect(answer).toEqual(reference);
    expect(answer?.trailers["grpc-message"]).toMatch(/headers/);
    expect(fastEcho().tookFastPath).toEqual([]);
  });
});

test("a client that does not read gets only what fits its window", async () => {
  const session = connect(fastEcho().server.url, { settings: { initialWindowSize: 1024 } });
  const stream = session.request({ ":method": "POST", ...grpc({ ":path": SERVER }) });
  stream.end(ask("flood")[0]);
  await vi.waitFor(() => expect(fastEcho().trace.sent).toBeGreaterThan(0));
  // The handler must not continue, however long the test waits, because the stream's flow-control window is full.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  const { sent } = fastEcho().trace;
  expect(sent).toBeLessThan(FLOOD);
  let bytes = 0;
  for await (const chunk of stream) bytes += (chunk as Buffer).length;
  expect(fastEcho().trace.sent).toBe(FLOOD);
  expect(bytes).toBeGreaterThan(FLOOD * 1000);
  session.close();
});

describe("a client that disconnects", () => {
  const session = () => sessions[1] as ClientHttp2Session;
  const open = (body: Uint8Array, end: boolean) => {
    const stream = session().request({ ":method": "POST", ...grpc() }, { endStream: false });
    stream.on("error", () => {});
    if (end) stream.end(body);
    else stream.write(body);
    return stream;
  };
  const stillServes = async () => {
    const answer = await exchange(session(), { headers: grpc(), body: [framed] });
    expect(answer.trailers["grpc-status"]).toBe("0");
    expect(lines.filter((line) => /"level":"(warn|error)"/.test(line))).toEqual([]);
  };

  it.each([
    constants.NGHTTP2_CANCEL,
    constants.NGHTTP2_NO_ERROR,
    constants.NGHTTP2_INTERNAL_ERROR,
    constants.NGHTTP2_ENHANCE_YOUR_CALM,
  ])("during a call, by code %i, aborts the handler", async (code) => {
    const stream = open(encodeEnvelope(0, message({ do: "wait" })), true);
    await vi.waitFor(() => expect(fastEcho().trace.started).toBe(1));
    stream.close(code);
    await vi.waitFor(() => expect(fastEcho().trace.ended).toEqual([{ aborted: true }]));
    await stillServes();
  });

  it("during a stream aborts the handler", async () => {
    const stream = session().request({ ":method": "POST", ...grpc({ ":path": SERVER }) });
    stream.on("error", () => {});
    stream.end(ask("wait")[0]);
    await vi.waitFor(() => expect(fastEcho().trace.started).toBe(1));
    stream.close(constants.NGHTTP2_CANCEL);
    await vi.waitFor(() => expect(fastEcho().trace.ended).toEqual([{ aborted: true }]));
    await stillServes();
  });

  it("in the middle of its message starts no handler", async () => {
    const stream = open(framed.subarray(0, 7), false);
    await vi.waitFor(() => expect(fastEcho().tookFastPath).toEqual([true]));
    stream.close(constants.NGHTTP2_CANCEL);
    await stillServes();
    expect(fastEcho().trace.started).toBe(0);
  });

  it("with its whole connection aborts all handlers", async () => {
    const other = connect(fastEcho().server.url).on("error", () => {});
    const headers = { ":method": "POST", ...grpc() };
    for (const _ of [1, 2])
      other
        .request(headers)
        .on("error", () => {})
        .end(ask("wait")[0]);
    await vi.waitFor(() => expect(fastEcho().trace.started).toBe(2));
    other.destroy();
    await vi.waitFor(() => expect(fastEcho().trace.ended).toHaveLength(2));
    await stillServes();
  });
});
