import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createBus } from "@depute/bus";
import { clientsOver, startWorker, type Work, type Worker } from "@depute/client";
import { CapabilityFullSchema } from "@depute/contracts/nekte/v1/nekte_pb";
import type { Clock } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  type HttpRoute,
  hostServices,
  type ModuleName,
  mergeSettings,
  readSettings,
  SERVICES,
  type ServiceDeps,
  type ServiceModule,
  type ServiceName,
} from "@depute/service";
import { MODULE_NAMES, MODULES } from "depute";

/** Starts some services in this process. Those of `listen` open a free port. */
async function host(
  names: readonly ModuleName[],
  listen: readonly ModuleName[],
  flags: readonly string[],
  clock?: Clock,
) {
  const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
  const ports = MODULE_NAMES.flatMap((name) => [`--${name}-port`, "0"]);
  const settings = readSettings(table, [...ports, ...flags], { name: "test" }) as CommonSettings;
  const bus = await createBus({
    onError: (error) => {
      throw error;
    },
  });
  const routes: HttpRoute[] = [];
  const noted: Noted = { routes, connect: undefined };
  const running = await hostServices({
    modules: names.map((name) => ({
      module: noting(MODULES[name], noted),
      settings,
      listen: listen.includes(name),
    })),
    common: settings,
    bus,
    log: createLogger({ level: process.env.DEPUTE_TEST_LOG ?? "silent", name: "test" }),
    ...(clock && { clock }),
  });
  return {
    urls: running.urls,
    routes,
    /** Connects to a service in the way of the gateway. */
    connect: (service: ServiceName) => (noted.connect ?? notStarted)(service),
    async stop() {
      await running.stop();
      await bus.close();
    },
  };
}

/** The parts of started modules that tests use. */
interface Noted {
  readonly routes: HttpRoute[];
  connect: ServiceDeps["connect"] | undefined;
}

function notStarted(): never {
  throw new Error("the platform has not started");
}

/** Returns the module with its declared routes and its connections recorded. */
function noting(module: ServiceModule, noted: Noted): ServiceModule {
  return {
    ...module,
    async start(deps, settings) {
      const instance = await module.start(deps, settings);
      noted.routes.push(...(instance.http ?? []));
      noted.connect = deps.connect;
      return instance;
    },
  };
}

/** The options of a test's platform. */
export interface TestPlatformOptions {
  /** The platform's clock; the system's clock when absent. */
  readonly clock?: Clock;
  /** A data folder that the test keeps. When absent, the platform uses a temporary folder. */
  readonly dataDir?: string;
}

/** Starts the whole platform in this process, with a gateway on a free port and, by default, temporary data. */
export async function startPlatform(args: readonly string[] = [], options: TestPlatformOptions = {}) {
  const dataDir = options.dataDir ?? mkdtempSync(join(tmpdir(), "depute-gateway-"));
  const wholePlatform = await host(
    MODULE_NAMES,
    ["gateway"],
    ["--data-dir", dataDir, ...args],
    options.clock,
  );
  const platform = clientsOf(wholePlatform.urls.gateway ?? "", async () => {
    await wholePlatform.stop();
    if (options.dataDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  });
  return { ...platform, routes: wholePlatform.routes, connect: wholePlatform.connect };
}

/** Starts the services and the gateway on separate sockets, so that every call between them crosses a socket. */
export async function startApart(args: readonly string[] = []) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-gateway-"));
  const flags = ["--data-dir", dataDir, "--internal-secret", "between-ourselves", ...args];
  const services = await host(SERVICES, SERVICES, flags);
  const urls = SERVICES.flatMap((name) => [`--${name}-url`, services.urls[name] ?? ""]);
  const gateway = await host(["gateway"], ["gateway"], [...flags, ...urls]);
  const platform = clientsOf(gateway.urls.gateway ?? "", async () => {
    await gateway.stop();
    await services.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return {
    ...platform,
    routes: gateway.routes,
    connect: gateway.connect,
    stopServices: () => services.stop(),
  };
}

/**
 * Returns the clients of the platform at an address, and functions that post JSON, run workers and stop the
 * platform.
 */
function clientsOf(url: string, stop: () => Promise<void>) {
  // This gRPC transport shares no code with the platform.
  const transport = createGrpcJsTransport(new URL(url).host);
  const workers: Worker[] = [];
  return {
    url,
    transport,
    clients: clientsOver(transport),
    /** Posts a JSON document. */
    post: (path: string, body: unknown, headers: Record<string, string> = {}) =>
      fetch(`${url}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    /** Runs a worker of an agent until the platform stops. */
    work(agentId: string, work: Work) {
      workers.push(startWorker({ calls: clientsOver(transport).workers, agentId, work, capacity: 8 }));
    },
    async stop() {
      for (const worker of workers) await worker.stop(0);
      transport.close();
      await stop();
    },
  };
}

export type TestPlatform = Awaited<ReturnType<typeof startPlatform>>;

/** Registers an agent with capabilities that accept and return any object. */
export async function introduce(
  { clients }: Pick<TestPlatform, "clients">,
  id: string,
  capabilities: readonly Parameters<typeof capability>[] = [],
  principal = "",
) {
  await clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, version: "1.2.0", principal },
  });
  if (capabilities.length === 0) return;
  await clients.agents.publishCapabilities({
    requestId: crypto.randomUUID(),
    agentId: id,
    capabilities: capabilities.map((parts) => capability(...parts)),
  });
}

export function capability(id: string, input: JsonValue = { type: "object" }, more: { avgMs?: number } = {}) {
  return create(CapabilityFullSchema, {
    id,
    cat: "nlp",
    desc: `does ${id}`,
    inputSchema: bytes(input),
    outputSchema: bytes({ type: "object" }),
    ...(more.avgMs === undefined ? {} : { cost: { avgMs: more.avgMs } }),
  });
}

export function bytes(value: JsonValue): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(JSON.stringify(value));
}

export const value = (json: JsonValue) => fromJson(ValueSchema, json);

/** Returns a JSON-RPC call. */
export function call(method: string, params?: unknown, id: string | number = 1) {
  return { ...notification(method, params), id };
}

/** Returns a JSON-RPC notification. */
export function notification(method: string, params?: unknown) {
  return { jsonrpc: "2.0", method, ...(params === undefined ? {} : { params }) };
}

// biome-ignore lint/suspicious/noExplicitAny: an answer is looked at member by member
export type Json = any;

/** Checks the status of a response, and returns the response's JSON. */
export async function json(answer: Promise<Response>, status = 200): Promise<Json> {
  const response = await answer;
  const text = await response.text();
  if (response.status !== status) throw new Error(`${response.status} instead of ${status}: ${text}`);
  return JSON.parse(text);
}

export async function result(answer: Promise<Response>): Promise<Json> {
  const body = await json(answer);
  if (body.error !== undefined) throw new Error(JSON.stringify(body.error));
  return body.result;
}

export async function error(answer: Promise<Response>, status = 200): Promise<Json> {
  const body = await json(answer, status);
  if (body.error === undefined) throw new Error(`no error: ${JSON.stringify(body)}`);
  return body.error;
}
