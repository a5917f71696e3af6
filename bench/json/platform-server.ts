import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MODULE_NAMES, startPlatform } from "depute";
import { reportCpu } from "../rate-of-cpu.ts";

/** Runs the whole platform in a separate process. The process reports the gateway's address. */

const dataDir = mkdtempSync(join(tmpdir(), "depute-bench-"));
process.on("exit", () => rmSync(dataDir, { recursive: true, force: true }));
reportCpu();
const { host } = await startPlatform({
  modules: MODULE_NAMES,
  listen: ["gateway"],
  args: ["--data-dir", dataDir, "--gateway-port", "0", "--log-level", "error"],
  name: "bench",
  description: "",
});
process.send?.({ url: host.urls.gateway });
