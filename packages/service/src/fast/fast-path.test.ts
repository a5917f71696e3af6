import { type ClientHttp2Session, connect, constants, type IncomingHttpHeaders } from "node:http2";
import { gunzipSync, gzipSync } from "node:zlib";
import { toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { systemClock, systemTimers } from "@depute/core";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { noCredentials } from "../credentials.ts";
import { serverInterceptors } from "../interceptors/server.ts";
import { createLogger } from "../log.ts";
import { createMetrics } from "../metrics.ts";
import { createRpcHandler } from "../rpc-handler.ts";
import { MAX_HEADER_BYTES, type Server, startServer } from "../server.ts";
import { EchoService, type EchoTrace, echoRoutes } from "../testing/echo.ts";
import { createFastPath } from "./fast-path.ts";

/** The adapter is the reference: what it answers, to the byte, is what the fast path has to answer. */

const MAX_BYTES = 1000;
const trace: EchoTrace = { started: 0, ended: [] };
const lines: string[] = [];
const log = createLogger({
  level: "info",
  name: "test",
  destination: { write: (line) => lines.push(line) },
});
const servers: Server[] = [];
const sessions: ClientHttp2Session[] = [];
/** What the fast path took, of the calls that it was asked about. */
let taken: boolean[] = [];

beforeAll(async () => {
  const interceptors = serverInterceptors({
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
    stopping: new AbortController().signal,
  });
  const rpc = { routes: echoRoutes(trace), interceptors, maxRequestBytes: MAX_BYTES, log };
  const fastPath = createFastPath(rpc);
  for (const fast of [false, true]) {
    const server = await startServer({
      host: "127.0.0.1",
      port: 0,
      rpc: createRpcHandler(rpc),
      ...(fast
        ? {
            fast: (stream, headers) => {
              taken.push(fastPath(stream, headers));
              return taken.at(-1) === true;
            },
          }
        : {}),
      routes: [],
      maxConnections: 10,
      maxConcurrentStreams: 10,
      log,
      timers: systemTimers,
    });
    servers.push(server);
    sessions.push(connect(server.url).on("error", () => {}));
  }
});

afterAll(async () => {
  for (const session of sessions) session.close();
  await Promise.all(servers.map((server) => server.close(100)));
});

beforeEach(() => {
  taken = [];
  trace.started = 0;
  trace.ended = [];
  lines.length = 0;
});

interface Request {
  headers: Record<string, string>;
  /** DATA frames; none: the request ends with its head. */
  body?: readonly Uint8Array[];
  /** Whether the client never ends its request. */
  open?: boolean;
}

interface Exchange {
  headers: IncomingHttpHeaders;
  body: string;
  trailers: IncomingHttpHeaders;
}

function exchange(session: ClientHttp2Session, { headers, body = [], open }: Request): Promise<Exchange> {
  return new Promise((resolve, reject) => {
    const all = { ":method": "POST", ":path": UNARY, ...headers };
    const stream = session.request(all, { endStream: body.length === 0 && open !== true });
    const answer: Exchange = { headers: {}, body: "", trailers: {} };
    const chunks: Buffer[] = [];
    stream.on("response", (received) => {
      answer.headers = received;
    });
    stream.on("trailers", (received) => {
      answer.trailers = received;
    });
    stream.on("data", (chunk: Buffer) => chunks.push(chunk));
    stream.on("end", () => {
      answer.body = Buffer.concat(chunks).toString("base64");
      resolve(withoutChance(answer));
      stream.close();
    });
    stream.on("error", reject);
    for (const chunk of body) stream.write(chunk);
    if (body.length > 0 && open !== true) stream.end();
  });
}

/** Time differs; and the adapter names the encoding that it would use also when a message is too short for it. */
function withoutChance({ headers, body, trailers }: Exchange): Exchange {
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
// Else each answer would have an id of its own.
const named = { "depute-request-id": "r-1" };
const bytes = (...all: number[]) => Uint8Array.from(all);
const utf8 = (text: string) => Buffer.from(text);
const grpc = (headers: Record<string, string> = {}) => ({
  "content-type": "application/grpc",
  te: "trailers",
  ...named,
  ...headers,
});
const proto = (headers: Record<string, string> = {}) => ({
  "content-type": "application/proto",
  ...named,
  ...headers,
});
const json = (headers: Record<string, string> = {}) => ({
  "content-type": "application/json",
  ...named,
  ...headers,
});
const ask = (what: string) => [encodeEnvelope(0, message({ do: what }))];

const FAST = true;
const ADAPTER = false;
const cases: [name: string, request: Request, fast: boolean, answer: string | number][] = [
  // What is plain.
  ["gRPC", { headers: grpc(), body: [framed] }, FAST, "0"],
  [
    "gRPC by its longer name",
    { headers: grpc({ "content-type": "application/grpc+proto" }), body: [framed] },
    FAST,
    "0",
  ],
  ["gRPC byte by byte", { headers: grpc(), body: [...framed].map((each) => bytes(each)) }, FAST, "0"],
  ["gRPC, identity", { headers: grpc({ "grpc-encoding": "identity" }), body: [framed] }, FAST, "0"],
  ["gRPC, an empty message", { headers: grpc(), body: [bytes(0, 0, 0, 0, 0)] }, FAST, "0"],
  ["gRPC with a time limit", { headers: grpc({ "grpc-timeout": "10S" }), body: [framed] }, FAST, "0"],
  ["Connect, binary", { headers: proto(), body: [hello] }, FAST, 200],
  ["Connect, an empty message", { headers: proto() }, FAST, 200],
  ["Connect, JSON", { headers: json(), body: [utf8('{"text":'), utf8('"a"}')] }, FAST, 200],
  ["Connect, a field that is not known", { headers: json(), body: [utf8('{"x":1}')] }, FAST, 200],
  [
    "Connect with a time limit",
    { headers: json({ "connect-timeout-ms": "9000" }), body: [utf8("{}")] },
    FAST,
    200,
  ],
  [
    "Connect with its length",
    { headers: proto({ "content-length": String(hello.length) }), body: [hello] },
    FAST,
    200,
  ],
  ["Connect, identity", { headers: proto({ "content-encoding": "identity" }), body: [hello] }, FAST, 200],

  // What is refused.
  ["gRPC, refused", { headers: grpc(), body: ask("refuse") }, FAST, "5"],
  ["gRPC, crashed", { headers: grpc(), body: ask("crash") }, FAST, "13"],
  [
    "gRPC, a rule broken",
    { headers: grpc(), body: [encodeEnvelope(0, message({ text: "x".repeat(21) }))] },
    FAST,
    "3",
  ],
  ["gRPC, due already", { headers: grpc({ "grpc-timeout": "0n" }), body: [framed] }, FAST, "4"],
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
  ["Connect, a rule broken", { headers: proto(), body: [message({ text: "x".repeat(21) })] }, FAST, 400],
  ["Connect, due already", { headers: proto({ "connect-timeout-ms": "0" }), body: [hello] }, FAST, 504],
  [
    "Connect, no implementation",
    { headers: proto({ ":path": "/depute.testing.EchoService/Missing" }) },
    FAST,
    501,
  ],

  // What turns out in the body not to be plain.
  ["gRPC, no body", { headers: grpc() }, FAST, "12"],
  ["gRPC, half of a prefix", { headers: grpc(), body: [framed.subarray(0, 3)] }, FAST, "3"],
  ["gRPC, nothing after the prefix", { headers: grpc(), body: [framed.subarray(0, 5)] }, FAST, "12"],
  ["gRPC, half of a message", { headers: grpc(), body: [framed.subarray(0, 8)] }, FAST, "3"],
  ["gRPC, a byte too many", { headers: grpc(), body: [framed, bytes(0)] }, FAST, "3"],
  ["gRPC, two messages", { headers: grpc(), body: [framed, framed] }, FAST, "12"],
  ["gRPC, two messages at once", { headers: grpc(), body: [Buffer.concat([framed, framed])] }, FAST, "12"],
  ["gRPC, compressed by nothing", { headers: grpc(), body: [encodeEnvelope(1, hello)] }, FAST, "13"],
  ["gRPC, a flag of no meaning", { headers: grpc(), body: [encodeEnvelope(2, hello)] }, FAST, "0"],
  ["gRPC, no message", { headers: grpc(), body: [encodeEnvelope(0, bytes(0x0a, 0x7f))] }, FAST, "3"],
  ["gRPC, no UTF-8", { headers: grpc(), body: [encodeEnvelope(0, bytes(0x0a, 1, 0xff))] }, FAST, "3"],
  [
    "gRPC, as long as may be",
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
    "gRPC, too long and never ending",
    { headers: grpc(), body: [bytes(0, 0, 1, 0, 0), new Uint8Array(5000)], open: true },
    FAST,
    "8",
  ],
  ["Connect, too long", { headers: proto(), body: [new Uint8Array(MAX_BYTES + 1)] }, FAST, 429],
  [
    "Connect, too long and never ending",
    { headers: proto(), body: [new Uint8Array(900), new Uint8Array(900)], open: true },
    FAST,
    429,
  ],
  ["Connect, no message", { headers: proto(), body: [bytes(0x0a, 0x7f)] }, FAST, 400],
  ["Connect, no JSON", { headers: json(), body: [utf8("{")] }, FAST, 400],
  ["Connect, another JSON", { headers: json(), body: [utf8('{"text":1}')] }, FAST, 400],
  ["Connect, no body for JSON", { headers: json() }, FAST, 400],

  // What is the adapter's from its head on.
  [
    "gRPC, compressed",
    { headers: grpc({ "grpc-encoding": "gzip" }), body: [encodeEnvelope(1, gzipSync(hello))] },
    ADAPTER,
    "0",
  ],
  [
    "gRPC, encoded in an unknown way",
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
  [
    "gRPC, a time limit that is none",
    { headers: grpc({ "grpc-timeout": "soon" }), body: [framed] },
    ADAPTER,
    "3",
  ],
  [
    "gRPC-Web",
    { headers: grpc({ "content-type": "application/grpc-web+proto" }), body: [framed] },
    ADAPTER,
    200,
  ],
  ["gRPC, a stream", { headers: grpc({ ":path": SERVER }), body: [framed] }, ADAPTER, "0"],
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
    "Connect, encoded in an unknown way",
    { headers: proto({ "content-encoding": "br" }), body: [hello] },
    ADAPTER,
    501,
  ],
  [
    "Connect, too long by its own word",
    { headers: proto({ "content-length": "1001" }), body: [new Uint8Array(1001)] },
    ADAPTER,
    429,
  ],
  [
    "Connect, a time limit that is none",
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
  ["no content type", { headers: {}, body: [hello] }, ADAPTER, 415],
  ["an unknown content type", { headers: { "content-type": "text/plain" }, body: [hello] }, ADAPTER, 415],
  ["by PUT", { headers: proto({ ":method": "PUT" }), body: [hello] }, ADAPTER, 405],
  [
    "after asking whether to continue",
    { headers: proto({ expect: "100-continue" }), body: [hello] },
    ADAPTER,
    200,
  ],
];

describe("the fast path answers what the adapter answers", () => {
  it.each(cases)("%s", async (_, request, fast, expected) => {
    const [reference, answer] = await Promise.all(sessions.map((session) => exchange(session, request)));
    expect(answer).toEqual(reference);
    expect(
      answer?.trailers["grpc-status"] ?? answer?.headers["grpc-status"] ?? answer?.headers[":status"],
    ).toBe(expected);
    expect(taken).toEqual([fast]);
  });

  it("to long answers, compressed for who takes that", async () => {
    const long = "long ".repeat(400).trim();
    const asked = { "x-ask": long };
    for (const [request, at] of [
      [
        { headers: grpc({ ...asked, "grpc-accept-encoding": "identity,deflate,gzip" }), body: ask("header") },
        5,
      ],
      [{ headers: json({ ...asked, "accept-encoding": "br, gzip" }), body: [utf8('{"do":"header"}')] }, 0],
    ] as const) {
      const [reference, answer] = await Promise.all(sessions.map((session) => exchange(session, request)));
      expect(answer).toEqual(reference);
      expect(gunzipSync(Buffer.from(answer?.body ?? "", "base64").subarray(at)).toString()).toContain(long);
    }
    expect(taken).toEqual([true, true]);
    const plain = { headers: grpc(asked), body: ask("header") };
    const [reference, answer] = await Promise.all(sessions.map((session) => exchange(session, plain)));
    expect(answer).toEqual(reference);
    expect(Buffer.from(answer?.body ?? "", "base64").toString()).toContain(long);
  });

  it("to headers that are too long, without being asked", async () => {
    // On a connection that is new: once its settings are agreed, HTTP/2 itself resets such a stream.
    const headers = { "content-type": "application/grpc", authorization: "x".repeat(MAX_HEADER_BYTES) };
    const fresh = servers.map(({ url }) => connect(url));
    const [reference, answer] = await Promise.all(
      fresh.map((session) => exchange(session, { headers, body: [framed] })),
    );
    for (const session of fresh) session.close();
    expect(answer).toEqual(reference);
    expect(answer?.trailers["grpc-message"]).toMatch(/headers/);
    expect(taken).toEqual([]);
  });
});

describe("a client that goes away", () => {
  const session = () => sessions[1] as ClientHttp2Session;
  const open = (body: Uint8Array, end: boolean) => {
    const stream = session().request({ ":method": "POST", ":path": UNARY, ...grpc() }, { endStream: false });
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
  ])("in mid call, by code %i, is told to the handler", async (code) => {
    const stream = open(encodeEnvelope(0, message({ do: "wait" })), true);
    await vi.waitFor(() => expect(trace.started).toBe(1));
    stream.close(code);
    await vi.waitFor(() => expect(trace.ended).toEqual([{ aborted: true }]));
    await stillServes();
  });

  it("in the middle of its message starts nothing", async () => {
    const stream = open(framed.subarray(0, 7), false);
    await vi.waitFor(() => expect(taken).toEqual([true]));
    stream.close(constants.NGHTTP2_CANCEL);
    await stillServes();
    expect(trace.started).toBe(0);
  });

  it("with its whole connection is told to the handlers", async () => {
    const other = connect((servers[1] as Server).url).on("error", () => {});
    const headers = { ":method": "POST", ":path": UNARY, ...grpc() };
    for (const _ of [1, 2])
      other
        .request(headers)
        .on("error", () => {})
        .end(ask("wait")[0]);
    await vi.waitFor(() => expect(trace.started).toBe(2));
    other.destroy();
    await vi.waitFor(() => expect(trace.ended).toHaveLength(2));
    await stillServes();
  });
});
