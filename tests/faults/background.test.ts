import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import {
  Health,
  HealthCheckResponse_ServingStatus as Status,
} from "@depute/contracts/grpc/health/v1/health_pb";
import { systemTimers, type Timers } from "@depute/core";
import { createGrpcJsTransport } from "@depute/grpc-js";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  hostServices,
  mergeSettings,
  readSettings,
  type ServiceModule,
} from "@depute/service";
import { CuttingProxy, freeSchema, ownPostgresForTests } from "@depute/store/testing";
import { MODULE_NAMES, MODULES } from "depute";
import { afterAll, afterEach, expect, test, vi } from "vitest";

const postgres = await ownPostgresForTests();
afterAll(() => postgres?.stop());
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const ROUNDS = 24;
/** Longest pause of a background loop, in milliseconds. */
const PAUSE_MS = 20;
/**
 * Timeouts of a transaction and of a check of a store. Timers of these lengths are not pauses of a loop, so the
 * test does not shorten them.
 */
const STORE_LIMITS_MS = [5_000, 3_000];

/** Timers that shorten the pauses of all background loops, so that each loop runs while the store fails. */
const hurried: Timers = {
  ...systemTimers,
  after: (ms, callback) =>
    systemTimers.after(STORE_LIMITS_MS.includes(ms) ? ms : Math.min(ms, PAUSE_MS), callback),
};

function hurry(module: ServiceModule): ServiceModule {
  const start: ServiceModule["start"] = (deps, settings) =>
    module.start(Object.create(deps, { timers: { value: hurried } }), settings);
  return { ...module, start };
}

/** Vitest fails the run at a rejection without a handler. In production such a rejection would end the process. */
test.runIf(postgres !== undefined)(
  "no background loop of any service ends the process when its store fails at any moment",
  async () => {
    const proxy = await CuttingProxy.start({ path: postgres?.path ?? "" });
    closing.push(() => proxy.stop());
    const dataDir = mkdtempSync(join(tmpdir(), "depute-background-"));
    closing.push(() => rmSync(dataDir, { recursive: true, force: true }));
    const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
    const flags = {
      "data-dir": dataDir,
      "gateway-port": "0",
      "postgres-url": `postgres://depute@127.0.0.1:${proxy.port}/postgres`,
      "postgres-schema-prefix": freeSchema(),
      "key-max-age": "1s",
      "tasks-retention": "1s",
      "tasks-tombstone-retention": "1s",
    };
    const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
    const settings = readSettings(table, args, { name: "test" }) as CommonSettings;
    const bus = await createBus({ onError: () => {} });
    closing.push(() => bus.close());
    const complaints = new Set<string>();
    const host = await hostServices({
      modules: MODULE_NAMES.map((name) => ({
        module: hurry(MODULES[name]),
        settings,
        listen: name === "gateway",
      })),
      common: settings,
      bus,
      log: createLogger({
        level: "warn",
        name: "test",
        destination: { write: (line) => complaints.add((JSON.parse(line) as { msg: string }).msg) },
      }),
    });
    closing.push(() => host.stop());
    const transport = createGrpcJsTransport(new URL(host.urls.gateway ?? "").host);
    closing.push(() => transport.close());
    const health = createClient(Health, transport);
    const isServing = async () => expect((await health.check({})).status).toBe(Status.SERVING);

    for (let round = 0; round < ROUNDS; round++) {
      // Each round cuts the connections after a different delay, so that the loops are at different points. Every third
      // round cuts when a certain SQL statement passes the proxy.
      await new Promise((resolve) => setTimeout(resolve, round));
      if (round % 3 === 0) await proxy.cutAt(["COMMIT", "SELECT", "UPDATE"][(round / 3) % 3] ?? "", "reset");
      else proxy.cut("reset");
      await new Promise((resolve) => setTimeout(resolve, 2 * PAUSE_MS));
      proxy.restore();
      await vi.waitFor(isServing, { timeout: 20_000, interval: 20 });
    }
    // Loops of every service have met the failing store, as these log lines show.
    expect([...complaints]).toEqual(
      expect.arrayContaining([
        "the check of ended leases failed; trying again",
        "old keys cannot be replaced; trying again",
        "report of an outcome to the registry failed; trying again",
        "time limits could not be applied; trying again",
        "time limits of sessions could not be applied; trying again",
        "times of executions could not be applied; trying again",
        "callbacks could not be sent; trying again",
      ]),
    );
  },
  180_000,
);
