import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import { MODULE_NAMES, MODULES } from "@depute/cli";
import {
  type CommonSettings,
  commonSettings,
  createLogger,
  hostServices,
  mergeSettings,
  readSettings,
} from "@depute/service";

/**
 * The whole platform in a process of its own, so that the client's work is not the server's. Tells its address, then
 * answers each message with the longest that its event loop was held since the message before, in milliseconds of its
 * thread's own time: what other processes take does not count.
 */
const TICK_MS = 2;
const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
const table = mergeSettings(commonSettings, ...MODULE_NAMES.map((name) => MODULES[name].settings));
const ports = MODULE_NAMES.flatMap((name) => [`--${name}-port`, "0"]);
const settings = readSettings(table, ["--data-dir", dataDir, ...ports], { name: "bench" }) as CommonSettings;
const bus = createBus({ onError: (error) => console.error(error) });
const host = await hostServices({
  modules: MODULE_NAMES.map((name) => ({ module: MODULES[name], settings, listen: name === "gateway" })),
  common: settings,
  bus,
  log: createLogger({ level: "fatal", name: "bench" }),
});

const cpuOf = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000;
let held = 0;
let last = cpuOf(process.threadCpuUsage());
setInterval(() => {
  const now = cpuOf(process.threadCpuUsage());
  held = Math.max(held, now - last);
  last = now;
}, TICK_MS).unref();
process.on("message", () => {
  process.send?.({ held });
  held = 0;
});
process.on("disconnect", async () => {
  await host.stop();
  await bus.close();
  rmSync(dataDir, { recursive: true, force: true });
  process.exit();
});
process.send?.({ url: host.urls.gateway });
