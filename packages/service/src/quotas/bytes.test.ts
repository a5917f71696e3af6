import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createClient, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { RetryInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { ErrorReason } from "@depute/core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { fromConnectError } from "../errors-on-wire.ts";
import { defineService } from "../module.ts";
import { EchoService, echoRoutes, FLOOD } from "../testing/echo.ts";
import { as, startTestHost, type TestHost } from "../testing/test-host.ts";

const echo = defineService({
  name: "registry",
  settings: {},
  descriptors: [EchoService],
  start: async () => ({ routes: echoRoutes({ started: 0, ended: [] }), close: async () => {} }),
});

/** Quota of a principal in bytes per second. The quota of an organization is twice as large. */
const BYTES = 10_000;
const ORGANIZATIONS = { "acme-1": "acme", "acme-2": "acme", "acme-3": "acme", globex: "globex" };

let host: TestHost;
beforeAll(async () => {
  host = await startTestHost({
    module: echo,
    principals: ["ada", "bob", ...Object.keys(ORGANIZATIONS)],
    organizations: ORGANIZATIONS,
    commonArgs: [...["--quota-bytes", String(BYTES), "--quota-organization-factor", "2"]],
  });
}, 60_000);
afterAll(() => host.stop());
beforeEach(() => host.clock.advance(3_600_000));

const refused = (limit: string) => ({
  reason: ErrorReason.LIMIT_EXCEEDED,
  metadata: { limit: `${limit}_bytes_per_second`, retry_after_ms: expect.stringMatching(/^\d+$/) },
});
const outcome = (call: Promise<unknown>) => call.then(() => "served", fromConnectError);

const wires: [string, () => Transport][] = [
  ["a stock gRPC client", () => host.transport],
  ["gRPC", () => createGrpcTransport({ baseUrl: host.url })],
  ["gRPC-Web", () => createGrpcWebTransport({ baseUrl: host.url, httpVersion: "1.1" })],
  ["Connect over HTTP/2", () => createConnectTransport({ baseUrl: host.url, httpVersion: "2" })],
  ["Connect over HTTP/1.1", () => createConnectTransport({ baseUrl: host.url, httpVersion: "1.1" })],
  [
    "Connect in JSON",
    () => createConnectTransport({ baseUrl: host.url, httpVersion: "2", useBinaryFormat: false }),
  ],
];

describe.each(wires)("over %s", (_, transportOf) => {
  const call = (principal: string, message: object, headers: Record<string, string> = {}) =>
    createClient(EchoService, transportOf()).unary(message, {
      headers: { authorization: `Bearer ${principal}`, ...headers },
    });

  test("a request that exceeds the quota is served, and the next call is refused until the bytes are paid", async () => {
    expect(await outcome(call("ada", { do: "x".repeat(3 * BYTES) }))).toBe("served");
    const refusal = await outcome(call("ada", {}));
    expect(refusal).toMatchObject(refused("principal"));
    expect(await outcome(call("bob", {}))).toBe("served");
    const waitMs = Number((refusal as { metadata: Record<string, string> }).metadata.retry_after_ms);
    expect(waitMs).toBeGreaterThan(1_900);
    expect(waitMs).toBeLessThan(2_200);
    host.clock.advance(waitMs - 1);
    expect(await outcome(call("ada", {}))).toMatchObject(refused("principal"));
    host.clock.advance(1);
    expect(await outcome(call("ada", {}))).toBe("served");
  });

  test("answers count like requests", async () => {
    const header = { "x-ask": "y".repeat(2_000) };
    let served = 0;
    while (served < 20 && (await outcome(call("ada", { do: "header" }, header))) === "served") served += 1;
    // Five responses of 2,000 bytes use up the quota of one second.
    expect(served).toBe(5);
  });
});

test("a stock gRPC client gets the wait in RetryInfo", async () => {
  const client = host.client(EchoService);
  await client.unary({ do: "x".repeat(3 * BYTES) }, as("ada"));
  const thrown = await client.unary({}, as("ada")).catch((error) => error);
  expect(thrown.rawMessage).toContain("principal has used its quota of 10000 bytes per second");
  const [retry] = thrown.findDetails(RetryInfoSchema);
  expect(retry?.retryDelay?.seconds).toBe(2n);
});

test("curl gets 429 with Retry-After", async () => {
  const curl = async (body: object) => {
    const { stdout } = await promisify(execFile)("curl", [
      ...["-sS", "-o", "/dev/null", "-w", "%{http_code} %header{retry-after}", "-X", "POST"],
      ...["-H", "content-type: application/json", "-H", "authorization: Bearer ada"],
      ...["-d", JSON.stringify(body), `${host.url}/depute.testing.EchoService/Unary`],
    ]);
    return stdout.trim();
  };
  expect(await curl({ do: "x".repeat(3 * BYTES) })).toBe("200");
  expect(await curl({})).toBe("429 3");
});

test("the members of an organization share its bytes, and another organization is not affected", async () => {
  const client = host.client(EchoService);
  const use = (principal: string) => client.unary({ do: "x".repeat(BYTES - 500) }, as(principal));
  for (const member of ["acme-1", "acme-2", "acme-1"]) await outcome(use(member));
  await outcome(use("acme-3"));
  expect(await outcome(client.unary({}, as("acme-3")))).toMatchObject(refused("organization"));
  expect(await outcome(client.unary({}, as("globex")))).toBe("served");
});

test.each([
  ["the fast path", () => host.transport],
  ["the adapter", () => createGrpcWebTransport({ baseUrl: host.url, httpVersion: "1.1" })],
])(
  "an open stream over %s waits for its quota, and loses no message",
  async (_, transportOf) => {
    const client = createClient(EchoService, transportOf());
    let received = 0;
    const reading = (async () => {
      for await (const { text } of client.server({ do: "flood" }, as("ada")))
        received += text.length > 3 ? 1 : 0;
    })();
    const settle = () => new Promise((resolve) => setTimeout(resolve, 300));
    await settle();
    // Each message has a kilobyte, so the quota of one second is about ten messages.
    expect(received).toBeGreaterThan(5);
    expect(received).toBeLessThan(15);
    expect(await outcome(client.unary({}, as("ada")))).toMatchObject(refused("principal"));
    const advancing = setInterval(() => host.clock.advance(600_000), 50);
    await reading;
    clearInterval(advancing);
    expect(received).toBe(FLOOD);
  },
  180_000,
);

test("a waiting stream ends when its caller leaves", async () => {
  const client = host.client(EchoService);
  const leaving = new AbortController();
  const stream = client.server({ do: "flood" }, { ...as("ada"), signal: leaving.signal });
  setTimeout(() => leaving.abort(), 200);
  await expect(
    (async () => {
      for await (const message of stream) void message;
    })(),
  ).rejects.toThrow(/cancel|abort/i);
});
