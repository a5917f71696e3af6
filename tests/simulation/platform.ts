import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Transport } from "@connectrpc/connect";
import { createBus } from "@depute/bus";
import { clientsOver, type DeputeClients } from "@depute/client";
import { ManualClock } from "@depute/core";
import { PLATFORM_SERVICES } from "@depute/core/services";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  hostServices,
  mergeSettings,
  readSettings,
  SERVICES,
  type ServiceName,
} from "@depute/service";
import { MODULES } from "depute";

/**
 * Length of one step of the clock. A step is shorter than every interval at which a service looks for stale
 * data.
 */
const STEP_MS = 5_000;
/** After this many turns of the event loop without a file operation, background work counts as finished. */
const QUIET_TURNS = 200;

/**
 * Starts four services in this process, on a clock that stands still until the test moves it. No service opens a port.
 */
export async function startSimulation() {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-simulation-"));
  const clock = new ManualClock();
  const table = mergeSettings(commonSettings, ...SERVICES.map((name) => MODULES[name].settings));
  const settings = readSettings(table, ["--data-dir", dataDir], { name: "test" }) as CommonSettings;
  const errors: unknown[] = [];
  const bus = await createBus({ onError: (error) => errors.push(error) });
  const host = await hostServices({
    modules: SERVICES.map((name) => ({ module: MODULES[name], settings, listen: false })),
    common: settings,
    bus,
    log: createLogger({ level: "silent", name: "test" }),
    clock,
    timers: clock,
  });
  return {
    clock,
    errors,
    clients: clientsOver(routed((name) => host.connect(name))),
    /** Moves the clock in steps. After each step, waits until the due work has finished. */
    async pass(ms: number): Promise<void> {
      // Running calls first set their timers; only then the clock moves.
      await settled(clock);
      for (let left = ms; left > 0; left -= STEP_MS) {
        clock.advance(Math.min(left, STEP_MS));
        await settled(clock);
      }
    },
    async stop(): Promise<void> {
      await host.stop();
      await bus.close();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export type Simulation = Awaited<ReturnType<typeof startSimulation>> & { readonly clients: DeputeClients };

async function settled(clock: ManualClock): Promise<void> {
  for (let turn = 0; turn < QUIET_TURNS; turn++) await clock.nextTurn();
}

const OWNERS = new Map<string, ServiceName>(
  SERVICES.flatMap((name) =>
    Object.values(PLATFORM_SERVICES[name]).map((service): [string, ServiceName] => [service.typeName, name]),
  ),
);

/** Makes one transport that routes each call to its service. */
function routed(connect: (name: ServiceName) => Transport): Transport {
  const target = (typeName: string) => {
    const owner = OWNERS.get(typeName);
    if (owner === undefined) throw new Error(`no simulated service serves ${typeName}`);
    return connect(owner);
  };
  return {
    unary: (method, ...call) => target(method.parent.typeName).unary(method, ...call),
    stream: (method, ...call) => target(method.parent.typeName).stream(method, ...call),
  };
}
