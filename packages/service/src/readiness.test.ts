import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import { systemTimers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { StoreLostError, type StoreState } from "@depute/store";
import { afterEach, expect, test, vi } from "vitest";
import { commonSettings } from "./common-settings.ts";
import { hostServices } from "./host.ts";
import { createLogger } from "./log.ts";
import type { ServiceModule } from "./module.ts";
import type { ModuleName } from "./names.ts";
import { readSettings } from "./settings.ts";
import { EchoService } from "./testing/echo.ts";

const WAIT = { timeout: 10_000, interval: 20 };
const ECHO = EchoService.typeName;
const UNAVAILABLE: StoreState = { kind: "unavailable", error: new Error("no disk") };
const READY: StoreState = { kind: "ready" };

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Returns a service with a store, and functions by which the test sets the state of the store. */
function withStore(name: ModuleName) {
  let tell: (state: StoreState) => void = () => {};
  const module: ServiceModule = {
    name,
    settings: {},
    descriptors: [EchoService],
    async start(deps) {
      tell = deps.storeAt("first").onState ?? tell;
      return { routes: () => {}, close: async () => {} };
    },
  };
  return { module, tell: (state: StoreState) => tell(state) };
}

const forwarding: ServiceModule = {
  name: "gateway",
  settings: {},
  descriptors: [EchoService],
  forwards: { tasks: [EchoService] },
  start: async () => ({ routes: () => {}, close: async () => {} }),
};

async function host(modules: ServiceModule[], args: readonly string[] = [], onLost?: (error: Error) => void) {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-readiness-"));
  const ports = modules.flatMap(({ name }) => [`--${name}-port`, "0"]);
  const common = readSettings(commonSettings, ["--data-dir", dataDir, ...ports, ...args], { name: "test" });
  const bus = await createBus({ onError: () => {} });
  const running = await hostServices({
    modules: modules.map((module) => ({ module, settings: {}, listen: true })),
    common,
    bus,
    log: createLogger({ level: "silent", name: "test" }),
    timers: systemTimers,
    ...(onLost && { onLost }),
  });
  const stop = async () => {
    await running.stop();
    await bus.close();
    rmSync(dataDir, { recursive: true, force: true });
  };
  closing.push(stop);
  return { urls: running.urls, stop };
}

/** Returns the health of a process: over gRPC for all its services and for one service, and over HTTP. */
async function healthOf(url = "") {
  const transport = createGrpcJsTransport(new URL(url).host);
  closing.push(() => transport.close());
  const health = createClient(Health, transport);
  const page = async () => {
    const answer = await fetch(`${url}/health`);
    return { status: answer.status, body: (await answer.json()) as { services: Record<string, string> } };
  };
  return async () => {
    const { status, body } = await page();
    const servingFlags = [
      (await health.check({})).status === Status.SERVING,
      (await health.check({ service: ECHO })).status === Status.SERVING,
      status === 200,
      body.services[ECHO] === "SERVING",
    ];
    expect(new Set(servingFlags).size).toBe(1);
    return servingFlags[0];
  };
}

test("the health of a process follows its stores, on every wire", async () => {
  const service = withStore("tasks");
  const serves = await healthOf((await host([service.module])).urls.tasks);
  expect(await serves()).toBe(true);
  service.tell(UNAVAILABLE);
  expect(await serves()).toBe(false);
  service.tell(READY);
  expect(await serves()).toBe(true);
});

test("a gateway in the same process is healthy if the services behind it are", async () => {
  const service = withStore("tasks");
  const serves = await healthOf((await host([service.module, forwarding])).urls.gateway);
  expect(await serves()).toBe(true);
  service.tell(UNAVAILABLE);
  expect(await serves()).toBe(false);
  service.tell(READY);
  expect(await serves()).toBe(true);
});

test("a separate gateway reports the health of a service, and its absence", async () => {
  const service = withStore("tasks");
  const apart = await host([service.module]);
  const serves = await healthOf(
    (await host([forwarding], ["--tasks-url", apart.urls.tasks ?? ""])).urls.gateway,
  );
  const becomes = (expected: boolean) => vi.waitFor(async () => expect(await serves()).toBe(expected), WAIT);
  await becomes(true);
  service.tell(UNAVAILABLE);
  await becomes(false);
  service.tell(READY);
  await becomes(true);
  await apart.stop();
  await becomes(false);
});

test("a lost store is reported once, and its service never serves again", async () => {
  const onLost = vi.fn();
  const service = withStore("tasks");
  const serves = await healthOf((await host([service.module], [], onLost)).urls.tasks);
  const error = new StoreLostError("the file was removed");
  service.tell({ kind: "lost", error });
  service.tell({ kind: "lost", error });
  expect(onLost.mock.calls).toEqual([[error]]);
  expect(await serves()).toBe(false);
});
