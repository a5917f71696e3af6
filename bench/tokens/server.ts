import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import { systemClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { tokens } from "@depute/tokens";

/**
 * The tokens service in a process of its own. Tells its address, then answers each message with the CPU time that it
 * has used. Its argument is the address of the Redis that wakes; without it, wake-ups stay in the process.
 */

const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
process.on("disconnect", () => process.exit());

const about = { name: "bench" };
const redisUrl = process.argv[2];
const publicUrl = "https://depute.example";
const host = await hostServices({
  modules: [{ module: tokens, settings: readSettings(tokens.settings, [], about), listen: true }],
  common: readSettings(
    commonSettings,
    ["--data-dir", dataDir, "--tokens-port", "0", "--public-url", publicUrl],
    about,
  ),
  bus: createBus({ onError: (error) => console.error(error), ...(redisUrl !== undefined && { redisUrl }) }),
  log: createLogger({ level: "error", name: "bench" }),
  clock: systemClock,
  timers: systemTimers,
});
process.on("message", () => process.send?.({ cpu: process.cpuUsage() }));
process.send?.({ address: new URL(host.urls.tokens ?? "").host });
