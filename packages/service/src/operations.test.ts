import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { type ConnectRouter, createClient, type Transport } from "@connectrpc/connect";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import { ServerReflection } from "@depute/contracts/grpc/reflection/v1/reflection_pb";
import { ServerReflection as ServerReflectionAlpha } from "@depute/contracts/grpc/reflection/v1alpha/reflection_pb";
import { ErrorReason, systemClock, systemTimers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { fromConnectError } from "./errors-on-wire.ts";
import { createHealth, HealthParts, healthService } from "./health.ts";
import { errorsInterceptor } from "./interceptors/server.ts";
import { createLogger } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { operationsRoutes } from "./operations.ts";
import { registerReflection } from "./reflection.ts";
import { createRpcHandler } from "./rpc-handler.ts";
import { type Server, startServer } from "./server.ts";
import { EchoService } from "./testing/echo.ts";

const log = createLogger({ level: "silent", name: "test" });
const METRICS_TOKEN = "scrape";
const parts = new HealthParts();
const health = createHealth(["a.A", "b.B"], parts);
let server: Server;
let transport: Transport & { close(): void };

beforeAll(async () => {
  const routes = (router: ConnectRouter) => {
    router.service(Health, healthService(health));
    registerReflection(router, [EchoService, Health]);
  };
  server = await startServer({
    place: { host: "127.0.0.1", port: 0 },
    rpc: createRpcHandler({
      routes,
      interceptors: [errorsInterceptor()],
      maxRequestBytes: 10_000,
      bodyTimeoutMs: 1000,
      clock: systemClock,
      timers: systemTimers,
      log,
    }),
    routes: operationsRoutes(health, { registry: createMetrics(), token: METRICS_TOKEN }),
    maxConnections: 10,
    maxConcurrentStreams: 10,
    log,
    timers: systemTimers,
  });
  transport = createGrpcJsTransport(`127.0.0.1:${server.port}`);
});

afterAll(async () => {
  transport.close();
  await server.close(100);
});

describe("probes", () => {
  it("state whether the process is alive, and whether it is ready", async () => {
    health.set(true);
    const statusOf = async (path: string) => (await fetch(`${server.url}${path}`)).status;
    expect([await statusOf("/livez"), await statusOf("/readyz")]).toEqual([200, 200]);
    health.set(false, "a.A");
    expect([await statusOf("/livez"), await statusOf("/readyz")]).toEqual([200, 503]);
    health.set(false);
  });
});

describe("health", () => {
  it("follows the services' states", async () => {
    const client = createClient(Health, transport);
    const check = async (service: string) => (await client.check({ service })).status;
    expect(await check("")).toBe(Status.NOT_SERVING);
    health.set(true, "a.A");
    expect(await check("a.A")).toBe(Status.SERVING);
    expect(await check("b.B")).toBe(Status.NOT_SERVING);
    expect(await check("")).toBe(Status.NOT_SERVING);
    expect((await fetch(`${server.url}/health`)).status).toBe(503);

    health.set(true);
    expect(await check("")).toBe(Status.SERVING);
    expect(Object.keys((await client.list({})).statuses)).toEqual(["", "a.A", "b.B"]);
    const answer = await fetch(`${server.url}/health`);
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({
      status: "SERVING",
      services: { "a.A": "SERVING", "b.B": "SERVING" },
    });
  });

  it("reports a part that fails, and stays ready", async () => {
    health.set(true);
    parts.set("part/one", false);
    const client = createClient(Health, transport);
    const abort = new AbortController();
    const watch = client.watch({ service: "part/one" }, { signal: abort.signal });
    const seen: number[] = [];
    for await (const { status } of watch) {
      seen.push(status);
      if (seen.length === 1) parts.set("part/one", true);
      else break;
    }
    abort.abort();
    expect(seen).toEqual([Status.NOT_SERVING, Status.SERVING]);
    parts.set("part/one", false);
    expect((await client.check({ service: "" })).status).toBe(Status.SERVING);
    const answer = await fetch(`${server.url}/readyz`);
    expect([answer.status, await answer.json()]).toMatchObject([
      200,
      { parts: { "part/one": "NOT_SERVING" } },
    ]);
    parts.set("part/one", undefined);
    expect(Object.keys((await client.list({})).statuses)).toEqual(["", "a.A", "b.B"]);
  });

  it("reports a service that is not served as unknown", async () => {
    const error = await createClient(Health, transport)
      .check({ service: "c.C" })
      .catch((caught: unknown) => caught);
    expect(fromConnectError(error)).toMatchObject({
      reason: ErrorReason.SERVICE_UNKNOWN,
      metadata: { service: "c.C" },
    });
  });

  it("is watched: the present state, then each change", async () => {
    health.set(true);
    const abort = new AbortController();
    const watch = createClient(Health, transport).watch({ service: "a.A" }, { signal: abort.signal });
    const seen: number[] = [];
    for await (const { status } of watch) {
      seen.push(status);
      if (seen.length === 1) health.set(true);
      if (seen.length === 1) health.set(false, "a.A");
      if (seen.length === 2) break;
    }
    abort.abort();
    expect(seen).toEqual([Status.SERVING, Status.NOT_SERVING]);
  });

  it("is watched for a service that starts later", async () => {
    const abort = new AbortController();
    const watch = createClient(Health, transport).watch({ service: "later.L" }, { signal: abort.signal });
    for await (const { status } of watch) {
      expect(status).toBe(Status.SERVICE_UNKNOWN);
      break;
    }
    abort.abort();
  });
});

describe("metrics", () => {
  it.each([
    ["no token", {}, 401],
    ["another token", { authorization: "Bearer other" }, 401],
    ["the token as another scheme", { authorization: `Basic ${METRICS_TOKEN}` }, 401],
    ["the token", { authorization: `Bearer ${METRICS_TOKEN}` }, 200],
  ])("with %s", async (_, headers: Record<string, string>, status) => {
    const answer = await fetch(`${server.url}/metrics`, { headers });
    const text = await answer.text();
    expect(answer.status).toBe(status);
    expect(answer.headers.get("www-authenticate") === null).toBe(status === 200);
    expect(text.includes("# HELP")).toBe(status === 200);
    expect(text).not.toContain(METRICS_TOKEN);
  });

  it("have Prometheus's format", async () => {
    const headers = { authorization: `Bearer ${METRICS_TOKEN}` };
    const answer = await fetch(`${server.url}/metrics`, { headers });
    expect(answer.headers.get("content-type")).toContain("text/plain");
    expect(await answer.text()).toContain("process_cpu_user_seconds_total");
  });
});

describe.each([
  ["v1", ServerReflection],
  ["v1alpha", ServerReflectionAlpha as unknown as typeof ServerReflection],
])("reflection %s", (_, service) => {
  async function ask(messageRequest: object) {
    async function* requests() {
      yield { messageRequest } as never;
    }
    const answers: unknown[] = [];
    for await (const { messageResponse } of createClient(service, transport).serverReflectionInfo(
      requests(),
    )) {
      answers.push(messageResponse);
    }
    expect(answers).toHaveLength(1);
    return answers[0] as { case: string; value: unknown };
  }

  it("lists the services", async () => {
    const { value } = await ask({ case: "listServices", value: "" });
    expect((value as { service: { name: string }[] }).service.map(({ name }) => name)).toEqual([
      "depute.testing.EchoService",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  it.each([
    ["fileContainingSymbol", "depute.testing.EchoService"],
    ["fileContainingSymbol", "depute.testing.EchoService.Unary"],
    ["fileContainingSymbol", "depute.testing.EchoRequest"],
    ["fileContainingSymbol", "depute.testing.EchoRequest.text"],
    ["fileByFilename", "depute/testing/echo.proto"],
  ])("returns files with all their imports: %s %s", async (kind, value) => {
    const answer = await ask({ case: kind, value });
    const bytes = (answer.value as { fileDescriptorProto: Uint8Array[] }).fileDescriptorProto;
    const files = new Map(
      bytes.map((each) => fromBinary(FileDescriptorProtoSchema, each)).map((file) => [file.name, file]),
    );
    const echo = files.get("depute/testing/echo.proto");
    if (echo === undefined) throw new Error("not the file that was asked for");
    const registry = createFileRegistry(echo, (name) => files.get(name));
    expect(registry.getService("depute.testing.EchoService")?.methods).toHaveLength(6);
    expect(registry.getFile("buf/validate/validate.proto")).toBeDefined();
  });

  it("returns extensions", async () => {
    const numbers = await ask({ case: "allExtensionNumbersOfType", value: "google.protobuf.FieldOptions" });
    expect(numbers.value).toMatchObject({ extensionNumber: [1159, 1160] });
    const file = await ask({
      case: "fileContainingExtension",
      value: { containingType: "google.protobuf.FieldOptions", extensionNumber: 1159 },
    });
    expect(file.case).toBe("fileDescriptorResponse");
  });

  it.each([
    [{ case: "fileByFilename", value: "no.proto" }, 5],
    [{ case: "fileContainingSymbol", value: "toString" }, 5],
    [{ case: "allExtensionNumbersOfType", value: "no.Type" }, 5],
    [{ case: undefined }, 3],
  ])("reports an unknown symbol: %j", async (question, errorCode) => {
    expect(await ask(question)).toMatchObject({ case: "errorResponse", value: { errorCode } });
  });
});
