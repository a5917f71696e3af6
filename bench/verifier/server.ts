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
 * with the credentials file's content; tells its port, then answers each message with how long its event loop was held
 * at most since the message before, in milliseconds, and with the CPU time of its own thread, in microseconds.
 */
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

let held = 0;
let last = performance.now();
setInterval(() => {
  held = Math.max(held, performance.now() - last - 5);
  last = performance.now();
}, 5).unref();
process.on("message", () => {
  const { user, system } = process.threadCpuUsage();
  process.send?.({ held, cpu: user + system });
  held = 0;
});
process.on("disconnect", async () => {
  await host.stop();
  await bus.close();
  rmSync(dataDir, { recursive: true, force: true });
  process.exit();
});
process.send?.({ url: host.urls.verifier });
