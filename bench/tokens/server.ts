import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import { systemClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { tokens } from "@depute/tokens";

/**
 * Runs the tokens service in a separate process. The process reports its address and answers each message with its CPU
 * time so far. The first argument is the address of the Redis bus; without it or with an empty one, wake-ups stay in the
 * process. The other arguments are settings of every server.
 */

const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
process.on("disconnect", () => process.exit());

const program = { name: "bench" };
const [redisUrl = "", ...settings] = process.argv.slice(2);
const publicUrl = "https://depute.example";
const host = await hostServices({
  modules: [{ module: tokens, settings: readSettings(tokens.settings, [], program), listen: true }],
  common: readSettings(
    commonSettings,
    ["--data-dir", dataDir, "--tokens-port", "0", "--public-url", publicUrl, ...settings],
    program,
  ),
  bus: await createBus({ onError: (error) => console.error(error), ...(redisUrl !== "" && { redisUrl }) }),
  log: createLogger({ level: "error", name: "bench" }),
  clock: systemClock,
  timers: systemTimers,
});
process.on("message", () => process.send?.({ cpu: process.cpuUsage() }));
process.send?.({ address: new URL(host.urls.tokens ?? "").host });
