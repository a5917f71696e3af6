import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createBus } from "@depute/bus";
import { systemClock, systemTimers } from "@depute/core";
import { commonSettings, createLogger, hostServices, readSettings } from "@depute/service";
import { tokens } from "@depute/tokens";
import { verifier } from "@depute/verifier";

/**
 * The verifier with the tokens service in a process of its own, so that the client's work is not the server's. Started
 * with the credentials file's content; tells its port, then answers each message with its Load since the message before.
 */
const TICK_MS = 2;
const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
const credentialsFile = join(dataDir, "credentials.json");
writeFileSync(credentialsFile, process.argv[2] ?? "[]");
const about = { name: "bench" };
const bus = createBus({ onError: (error) => console.error(error) });
const log = createLogger({ level: "fatal", name: "bench" });
const host = await hostServices({
  modules: [
    { module: tokens, settings: readSettings(tokens.settings, [], about), listen: false },
    { module: verifier, settings: readSettings(verifier.settings, [], about), listen: true },
  ],
  common: readSettings(
    commonSettings,
    ["--data-dir", dataDir, "--credentials-file", credentialsFile, "--verifier-port", "0"],
    about,
  ),
  bus,
  log,
  clock: systemClock,
  timers: systemTimers,
});

const cpuOf = ({ user, system }: NodeJS.CpuUsage) => user + system;
let held = 0;
let waited = 0;
let last = { at: performance.now(), cpu: cpuOf(process.threadCpuUsage()) };
setInterval(() => {
  const now = { at: performance.now(), cpu: cpuOf(process.threadCpuUsage()) };
  held = Math.max(held, (now.cpu - last.cpu) / 1000);
  waited = Math.max(waited, now.at - last.at - TICK_MS);
  last = now;
}, TICK_MS).unref();
process.on("message", () => {
  process.send?.({ held, waited, cpu: cpuOf(process.threadCpuUsage()) });
  held = 0;
  waited = 0;
});
process.on("disconnect", async () => {
  await host.stop();
  await bus.close();
  rmSync(dataDir, { recursive: true, force: true });
  process.exit();
});
process.send?.({ url: host.urls.verifier });
