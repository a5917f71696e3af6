import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  compressionGzip,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type EchoServer, startEchoServer } from "../testing/echo-server.ts";
import { refusal } from "../testing/refusal.ts";

/**
 * More values than a request of CheckOutput may have. A request may have 16,384 fields, and each value counts as two
 * fields.
 */
const MANY: JsonValue = Array.from({ length: 10_000 }, () => 0);
const FEW: JsonValue = Array.from({ length: 1000 }, () => 0);
const contractId = "ct_000000000000";

const transports = new Map<string, Transport>();
const servers: EchoServer[] = [];
let answered = 0;
let foreign: { close(): void }[] = [];

beforeAll(async () => {
  for (const fast of [false, true]) {
    const echo = await startEchoServer({
      fast,
      maxRequestBytes: 4_000_000,
      routes: (router) =>
        router.rpc(VerificationService.method.checkOutput, () => {
          answered += 1;
          return {};
        }),
    });
    servers.push(echo);
    const { url: baseUrl, port } = echo.server;
    const packed = { baseUrl, sendCompression: compressionGzip, compressMinBytes: 1 };
    const grpcJs = createGrpcJsTransport(`127.0.0.1:${port}`);
    foreign.push(grpcJs);
    const transportsByName: Record<string, Transport> = {
      "gRPC, grpc-js": grpcJs,
      "gRPC, packed": createGrpcTransport(packed),
      "gRPC in JSON": createGrpcTransport({ baseUrl, useBinaryFormat: false }),
      "gRPC-Web, HTTP/1.1": createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
      "gRPC-Web, packed": createGrpcWebTransport({ ...packed, httpVersion: "2" }),
      "Connect, HTTP/2": createConnectTransport({ baseUrl, httpVersion: "2", useBinaryFormat: true }),
      "Connect, packed": createConnectTransport({ ...packed, httpVersion: "2", useBinaryFormat: true }),
      "Connect in JSON, HTTP/1.1": createConnectTransport({ baseUrl, httpVersion: "1.1" }),
      "Connect in JSON, HTTP/2": createConnectTransport({ baseUrl, httpVersion: "2" }),
      "Connect in JSON, packed": createConnectTransport({ ...packed, httpVersion: "2" }),
    };
    for (const [name, transport] of Object.entries(transportsByName)) {
      transports.set(`${name}${fast ? ", fast" : ""}`, transport);
    }
  }
});
afterAll(async () => {
  for (const transport of foreign) transport.close();
  foreign = [];
  await Promise.all(servers.map(({ server }) => server.close(100)));
});
beforeEach(() => {
  answered = 0;
});

const NAMES = [
  "gRPC, grpc-js",
  "gRPC, packed",
  "gRPC in JSON",
  "gRPC-Web, HTTP/1.1",
  "gRPC-Web, packed",
  "Connect, HTTP/2",
  "Connect, packed",
  "Connect in JSON, HTTP/1.1",
  "Connect in JSON, HTTP/2",
  "Connect in JSON, packed",
];

describe.each([...NAMES, ...NAMES.map((name) => `${name}, fast`)])("%s", (name) => {
  const check = (output: JsonValue) =>
    createClient(VerificationService, transports.get(name) as Transport).checkOutput({
      contractId,
      output: fromJson(ValueSchema, output),
    });

  test("a message with more fields than the limit is refused before it is decoded", async () => {
    expect(await refusal(check(MANY))).toMatchObject({
      reason: "LIMIT_EXCEEDED",
      metadata: { limit: "fields", max: "16384" },
    });
    expect(answered).toBe(0);
  });

  test("a message with fewer fields is answered, also a large one", async () => {
    await check(FEW);
    await check("x,".repeat(500_000));
    expect(answered).toBe(2);
  });

  test("a message with too many bytes is still refused", async () => {
    expect(await refusal(check("x".repeat(5_000_000)))).toMatchObject({ reason: "LIMIT_EXCEEDED" });
    expect(answered).toBe(0);
  });
});
