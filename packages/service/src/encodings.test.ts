import { type ClientHttp2Session, connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { toBinary } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { trailerParse } from "@connectrpc/connect/protocol-grpc-web";
import { ErrorReason } from "@depute/core";
import { Client, credentials, type ServiceError, status } from "@grpc/grpc-js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { fromConnectError } from "./errors-on-wire.ts";
import { EchoService } from "./testing/echo.ts";
import { type EchoServer, startEchoServer } from "./testing/echo-server.ts";
import { exchange, type RawAnswer } from "./testing/exchange.ts";

const MAX_BYTES = 1000;
const SERVICE = "/depute.testing.EchoService";

const echoes: EchoServer[] = [];
const sessions: ClientHttp2Session[] = [];

beforeAll(async () => {
  for (const fast of [false, true]) {
    const echo = await startEchoServer({ fast, maxRequestBytes: MAX_BYTES });
    echoes.push(echo);
    sessions.push(connect(echo.server.url));
  }
});

afterAll(async () => {
  for (const session of sessions) session.close();
  await Promise.all(echoes.map(({ server }) => server.close(100)));
});

/** The names of gRPC's encoding headers. */
const GRPC = { sent: "grpc-encoding", accepted: "grpc-accept-encoding" };
const WAYS = [
  ["gRPC, unary", "Unary", "application/grpc", GRPC, ofTrailers],
  ["gRPC, a stream of answers", "Server", "application/grpc", GRPC, ofTrailers],
  ["gRPC, a stream both ways", "Bidi", "application/grpc+proto", GRPC, ofTrailers],
  ["gRPC-Web, unary", "Unary", "application/grpc-web+proto", GRPC, ofLastFrame],
  ["gRPC-Web, a stream", "Server", "application/grpc-web+proto", GRPC, ofLastFrame],
  [
    "Connect, unary",
    "Unary",
    "application/proto",
    { sent: "content-encoding", accepted: "accept-encoding" },
    ofBody,
  ],
  [
    "Connect, a stream",
    "Server",
    "application/connect+proto",
    { sent: "connect-content-encoding", accepted: "connect-accept-encoding" },
    ofEndOfStream,
  ],
] as const;

const SERVERS = [
  ["the adapter", 0],
  ["the fast path", 1],
] as const;

const hello = toBinary(EchoService.method.unary.input, {
  $typeName: "depute.testing.EchoRequest",
  text: "hello",
  do: "",
});

function bodyOf(type: string, message: Uint8Array, flags: number): Uint8Array {
  return type === "application/proto" ? message : encodeEnvelope(flags, message);
}

describe.each(SERVERS)("%s", (_name, server) => {
  const send = (method: string, headers: Record<string, string>, body: Uint8Array) =>
    exchange(sessions[server] as ClientHttp2Session, {
      headers: { ":path": `${SERVICE}/${method}`, te: "trailers", ...headers },
      body: [body],
    });

  test.each(WAYS)("%s: the refusal of an unknown encoding names it and the known ones", async (...way) => {
    const [, method, type, { sent, accepted }, errorOf] = way;
    const answer = await send(method, { "content-type": type, [sent]: "snappy" }, bodyOf(type, hello, 1));
    expect(answer.headers[accepted]).toBe("gzip");
    const { reason, metadata, message } = fromConnectError(errorOf(answer));
    expect(reason).toBe(ErrorReason.UNSUPPORTED_ENCODING);
    expect(metadata).toEqual({ encoding: "snappy", supported: "gzip" });
    expect(message).toBe('the request\'s encoding "snappy" is not supported: send gzip or identity');
  });

  test.each(WAYS)("%s: a message in a known encoding is read", async (...way) => {
    const [, method, type, { sent, accepted }, errorOf] = way;
    const body = bodyOf(type, gzipSync(hello), 1);
    const answer = await send(method, { "content-type": type, [sent]: "gzip" }, body);
    expect(answer.headers[accepted]).toBeUndefined();
    expect(errorOf(answer)).toBeUndefined();
  });

  test.each(WAYS)("%s: the refusal of a message that is too long names its limit", async (...way) => {
    const [, method, type, { sent }, errorOf] = way;
    const long = new Uint8Array(MAX_BYTES + 1);
    const expected = {
      reason: ErrorReason.LIMIT_EXCEEDED,
      metadata: { limit: "message_bytes", max: "1000" },
      message: expect.stringMatching(/^the (body|message) is longer than 1000 bytes/),
    };
    const plain = await send(method, { "content-type": type }, bodyOf(type, long, 0));
    expect(fromConnectError(errorOf(plain))).toMatchObject(expected);
    const packed = await send(
      method,
      { "content-type": type, [sent]: "gzip" },
      bodyOf(type, gzipSync(long), 1),
    );
    expect(fromConnectError(errorOf(packed))).toMatchObject(expected);
  });

  test("a long name of an encoding is cut in the refusal", async () => {
    const headers = { "content-type": "application/grpc", "grpc-encoding": "x".repeat(1000) };
    const answer = await send("Unary", headers, encodeEnvelope(1, hello));
    expect(fromConnectError(ofTrailers(answer)).metadata.encoding).toBe("x".repeat(64));
  });

  test("@grpc/grpc-js is refused once, and then sends an encoding that the server reads", async () => {
    const { port } = new URL((echoes[server] as EchoServer).server.url);
    const deflate = { "grpc.default_compression_algorithm": 1 };
    const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), deflate);
    const call = () =>
      new Promise<ServiceError | null>((resolve) => {
        client.makeUnaryRequest(`${SERVICE}/Unary`, Buffer.from, (bytes) => bytes, hello, resolve);
      });
    const refusal = await call();
    expect(refusal?.code).toBe(status.UNIMPLEMENTED);
    expect(refusal?.details).toContain('encoding "deflate" is not supported');
    expect(refusal?.metadata.get("grpc-status-details-bin")).toHaveLength(1);
    // grpc-js does not show grpc-accept-encoding to programs, but obeys the header: the next call is not compressed.
    expect(await call()).toBeNull();
    client.close();
  });
});

function ofTrailers({ headers, trailers }: RawAnswer): ConnectError | undefined {
  const fields = Object.entries({ ...headers, ...trailers }).filter(([name]) => name.startsWith("grpc-"));
  return findTrailerError(new Headers(fields as [string, string][]));
}

function ofLastFrame({ body }: RawAnswer): ConnectError | undefined {
  return findTrailerError(trailerParse(lastFrame(body, 0x80)));
}

function ofBody({ headers, body }: RawAnswer): ConnectError | undefined {
  return Number(headers[":status"]) === 200 ? undefined : errorOfJson(textOf(Buffer.from(body, "base64")));
}

function ofEndOfStream({ body }: RawAnswer): ConnectError | undefined {
  const { error } = JSON.parse(textOf(lastFrame(body, 2))) as { error?: object };
  return error === undefined ? undefined : errorOfJson(JSON.stringify(error));
}

function errorOfJson(text: string): ConnectError {
  return errorFromJson(JSON.parse(text), undefined, new ConnectError("not an error"));
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString();
}

function lastFrame(body: string, flags: number): Uint8Array {
  let rest = Buffer.from(body, "base64");
  while (rest[0] !== flags) rest = rest.subarray(5 + rest.readUInt32BE(1));
  return rest.subarray(5);
}
