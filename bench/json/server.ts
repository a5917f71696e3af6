import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  hostServices,
  mergeSettings,
  readSettings,
} from "@depute/service";
import { MODULE_NAMES, MODULES } from "depute";

/**
 * Runs the whole platform in a separate process, so that the client's work is not measured. The process reports
 * its address. It answers each message with the longest block of its event loop since the previous message, in
 * milliseconds of the thread's CPU time. CPU time does not include the work of other processes.
 */
const TICK_MS = 2;
const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
const ports = MODULE_NAMES.flatMap((name) => [`--${name}-port`, "0"]);
const settings = readSettings(table, ["--data-dir", dataDir, ...ports], { name: "bench" }) as CommonSettings;
const bus = await createBus({ onError: (error) => console.error(error) });
const host = await hostServices({
  modules: MODULE_NAMES.map((name) => ({ module: MODULES[name], settings, listen: name === "gateway" })),
  common: settings,
  bus,
  log: createLogger({ level: "fatal", name: "bench" }),
});

const cpuOf = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000;
let longestHold = 0;
let last = cpuOf(process.threadCpuUsage());
setInterval(() => {
  const now = cpuOf(process.threadCpuUsage());
  longestHold = Math.max(longestHold, now - last);
  last = now;
}, TICK_MS).unref();
process.on("message", () => {
  process.send?.({ held: longestHold });
  longestHold = 0;
});
process.on("disconnect", async () => {
  await host.stop();
  await bus.close();
  rmSync(dataDir, { recursive: true, force: true });
  process.exit();
});
process.send?.({ url: host.urls.gateway });
