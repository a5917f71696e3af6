import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startPlatform } from "depute";

/**
 * Runs the four services in a separate process and reports their addresses. The process answers each message with the
 * CPU time of all its threads so far, in microseconds.
 */

const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
process.on("disconnect", () => process.exit());
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ cpu: user + system });
});

const services = ["tokens", "verifier", "registry", "tasks"] as const;
const ports = services.flatMap((name) => [`--${name}-port`, "0"]);
const { host } = await startPlatform({
  modules: [...services],
  listen: [...services],
  args: ["--data-dir", dataDir, "--public-url", "https://depute.example", "--log-level", "error", ...ports],
  name: "bench",
  description: "",
});
process.send?.(Object.fromEntries(services.map((name) => [name, new URL(host.urls[name] ?? "").host])));
