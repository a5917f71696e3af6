import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import { systemClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { tokens } from "@depute/tokens";
import { verifier } from "@depute/verifier";

/**
 * Runs the verifier and the tokens service in a separate process, so that the client's work is not measured. The
 * arguments are the content of the credentials file, and optionally a data folder that is kept. The process reports its port and answers each message with its Load
 * since the previous message.
 */
const TICK_MS = 2;
const [credentials = "[]", givenDir] = process.argv.slice(2);
const dataDir = givenDir ?? mkdtempSync(join(tmpdir(), "depute-bench-"));
const credentialsFile = join(dataDir, "credentials.json");
writeFileSync(credentialsFile, credentials);
const program = { name: "bench" };
const bus = await createBus({ onError: (error) => console.error(error) });
const log = createLogger({ level: "fatal", name: "bench" });
const host = await hostServices({
  modules: [
    { module: tokens, settings: readSettings(tokens.settings, [], program), listen: false },
    { module: verifier, settings: readSettings(verifier.settings, [], program), listen: true },
  ],
  common: readSettings(
    commonSettings,
    ["--data-dir", dataDir, "--credentials-file", credentialsFile, "--verifier-port", "0"],
    program,
  ),
  bus,
  log,
  clock: systemClock,
  timers: systemTimers,
});

const cpuOf = ({ user, system }: NodeJS.CpuUsage) => user + system;
let longestHold = 0;
let waited = 0;
let last = { at: performance.now(), cpu: cpuOf(process.threadCpuUsage()) };
setInterval(() => {
  const now = { at: performance.now(), cpu: cpuOf(process.threadCpuUsage()) };
  longestHold = Math.max(longestHold, (now.cpu - last.cpu) / 1000);
  waited = Math.max(waited, now.at - last.at - TICK_MS);
  last = now;
}, TICK_MS).unref();
process.on("message", () => {
  const cpu = cpuOf(process.threadCpuUsage());
  process.send?.({ held: longestHold, waited, cpu, cpuOfAll: cpuOf(process.cpuUsage()) });
  longestHold = 0;
  waited = 0;
});
process.on("disconnect", async () => {
  await host.stop();
  await bus.close();
  if (givenDir === undefined) rmSync(dataDir, { recursive: true, force: true });
  process.exit();
});
process.send?.({ url: host.urls.verifier });
