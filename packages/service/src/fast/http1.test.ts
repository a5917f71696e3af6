import { request as httpRequest, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, it, test } from "vitest";
import { EchoService } from "../testing/echo.ts";
import { type EchoServer, startEchoServer } from "../testing/echo-server.ts";

/** The tests compare the fast path with Connect's adapter over HTTP/1.1: both must send equal responses. */

const MAX_BYTES = 1000;
const UNARY = "/depute.testing.EchoService/Unary";
const SERVER = "/depute.testing.EchoService/Server";
const echoes: EchoServer[] = [];
const fastEcho = () => echoes[1] as EchoServer;

beforeAll(async () => {
  for (const fast of [false, true]) echoes.push(await startEchoServer({ fast, maxRequestBytes: MAX_BYTES }));
});

afterAll(async () => {
  await Promise.all(echoes.map(({ server }) => server.close(100)));
});

beforeEach(() => {
  const { tookFastPath, trace } = fastEcho();
  tookFastPath.length = 0;
  trace.ended = [];
});

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: OutgoingHttpHeaders;
  readonly body?: string | Uint8Array;
}

interface Received {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Sends a request by node:http, and returns the response without its date. */
function send(
  { server }: EchoServer,
  { method = "POST", path = UNARY, headers, body }: Sent,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const sending = httpRequest(`${server.url}${path}`, { method, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        const { date: _, ...rest } = response.headers;
        resolve({
          status: response.statusCode,
          headers: rest,
          body: Buffer.concat(chunks).toString("base64"),
        });
      });
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

const id = { "depute-request-id": "r-1" };
const json = (headers: OutgoingHttpHeaders = {}) => ({
  "content-type": "application/json",
  ...id,
  ...headers,
});
const proto = (headers: OutgoingHttpHeaders = {}) => ({
  "content-type": "application/proto",
  ...id,
  ...headers,
});
const hello = toBinary(EchoService.method.unary.input, {
  $typeName: "depute.testing.EchoRequest",
  text: "hello",
  do: "",
});

const FAST = true;
const ADAPTER = false;
const cases: [name: string, sent: Sent, fast: boolean, status: number][] = [
  ["JSON", { headers: json(), body: '{"text":"a"}' }, FAST, 200],
  ["JSON in chunks", { headers: json({ "transfer-encoding": "chunked" }), body: '{"text":"a"}' }, FAST, 200],
  ["binary", { headers: proto(), body: hello }, FAST, 200],
  ["an empty message", { headers: proto() }, FAST, 200],
  ["a timeout", { headers: json({ "connect-timeout-ms": "9000" }), body: "{}" }, FAST, 200],
  ["past its deadline", { headers: json({ "connect-timeout-ms": "0" }), body: "{}" }, FAST, 504],
  ["headers of the response", { headers: json({ "x-ask": "a b" }), body: '{"do":"header"}' }, FAST, 200],
  ["refused", { headers: json(), body: '{"do":"refuse"}' }, FAST, 404],
  ["crashed", { headers: json(), body: '{"do":"crash"}' }, FAST, 500],
  ["an invalid field", { headers: json(), body: `{"text":"${"x".repeat(21)}"}` }, FAST, 400],
  ["two kinds of credentials", { headers: json({ "x-api-key": "a", dpop: "b" }), body: "{}" }, FAST, 401],
  ["malformed JSON", { headers: json(), body: "{" }, FAST, 400],
  ["no body for JSON", { headers: json() }, FAST, 400],
  ["bytes that are not a message", { headers: proto(), body: Uint8Array.of(0x0a, 0x7f) }, FAST, 400],
  [
    "too long, without a length",
    { headers: json({ "transfer-encoding": "chunked" }), body: "x".repeat(MAX_BYTES + 1) },
    FAST,
    413,
  ],
  ["no implementation", { path: "/depute.testing.EchoService/Missing", headers: proto() }, FAST, 501],
  ["a length beyond the limit", { headers: proto(), body: new Uint8Array(MAX_BYTES + 1) }, ADAPTER, 413],
  ["compressed", { headers: proto({ "content-encoding": "gzip" }), body: gzipSync(hello) }, ADAPTER, 200],
  [
    "a charset",
    { headers: json({ "content-type": "application/json; charset=utf-8" }), body: "{}" },
    ADAPTER,
    200,
  ],
  ["a malformed timeout", { headers: json({ "connect-timeout-ms": "-1" }), body: "{}" }, ADAPTER, 400],
  ["a query", { path: `${UNARY}?a=b`, headers: json(), body: "{}" }, ADAPTER, 200],
  ["a stream", { path: SERVER, headers: json(), body: "{}" }, ADAPTER, 415],
  ["gRPC", { headers: { ...id, "content-type": "application/grpc" }, body: hello }, ADAPTER, 200],
  ["no content type", { headers: id, body: hello }, ADAPTER, 415],
  ["by PUT", { method: "PUT", headers: proto(), body: hello }, ADAPTER, 405],
  ["with Expect: 100-continue", { headers: proto({ expect: "100-continue" }), body: hello }, ADAPTER, 200],
];

describe("the fast path and the adapter give equal answers over HTTP/1.1", () => {
  it.each(cases)("%s", async (_, sent, fast, status) => {
    const [reference, answer] = await Promise.all(echoes.map((echo) => send(echo, sent)));
    expect(answer).toEqual(reference);
    expect(answer?.status).toBe(status);
    expect(fastEcho().tookFastPath).toEqual([fast]);
  });

  it("to a page of an allowed origin", async () => {
    const origin = "https://page.example";
    const server = { origins: [origin], door: () => undefined };
    const fastAndNot = [false, true].map((fast) =>
      startEchoServer({ fast, maxRequestBytes: MAX_BYTES, server }),
    );
    const pair = await Promise.all(fastAndNot);
    const sent = { headers: json({ origin }), body: "{}" };
    const [reference, answer] = await Promise.all(pair.map((echo) => send(echo, sent)));
    await Promise.all(pair.map((echo) => echo.server.close(100)));
    expect(answer).toEqual(reference);
    expect(answer?.headers["access-control-allow-origin"]).toBe(origin);
    expect(pair[1]?.tookFastPath).toEqual([true]);
  });
});

test("a client that leaves ends its call", async () => {
  const { server, trace } = fastEcho();
  const socket = connect(server.port, "127.0.0.1");
  const body = '{"do":"wait"}';
  socket.write(
    `POST ${UNARY} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await expect.poll(() => fastEcho().tookFastPath).toEqual([true]);
  await expect.poll(() => trace.started).toBeGreaterThan(0);
  socket.destroy();
  await expect.poll(() => trace.ended.length).toBe(1);
});
