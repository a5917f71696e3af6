import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { MODULE_NAMES, startPlatform } from "depute";

/**
 * Runs the whole platform in a process of its own, and answers each message with a sample of that process. The
 * argument is the data folder. Ended records are purged after minutes, so that the store reaches its final size
 * within the run.
 */

const RETENTION = ["tasks-retention=2m", "tasks-tombstone-retention=2m", "audit-retention=2m"];
const HEAP_INTERVAL_MS = 1_000;

/** What the server's process uses. */
export interface ServerSample {
  readonly rssBytes: number;
  /** The lowest use of the heap since the last sample, which is the use after a collection. */
  readonly heapBytes: number;
  readonly descriptors: number;
  /** Bytes of all files in the data folder, including the stores' write-ahead logs. */
  readonly storeBytes: number;
  /** Processor seconds of this process since its start. */
  readonly cpuSeconds: number;
}

const [folder = ""] = process.argv.slice(2);
let lowestHeap = Number.POSITIVE_INFINITY;
setInterval(() => {
  lowestHeap = Math.min(lowestHeap, process.memoryUsage().heapUsed);
}, HEAP_INTERVAL_MS);

process.on("disconnect", () => process.exit());
process.on("message", () => process.send?.(sample()));
const { host } = await startPlatform({
  modules: MODULE_NAMES,
  listen: ["gateway"],
  args: [
    ...["--data-dir", folder, "--gateway-port", "0", "--log-level", "warn"],
    ...RETENTION.map((setting) => `--${setting}`),
  ],
  name: "hour",
  description: "",
});
process.send?.({ address: new URL(host.urls.gateway ?? "").host });

function sample(): ServerSample {
  const { rss: rssBytes, heapUsed } = process.memoryUsage();
  const heapBytes = Math.min(lowestHeap, heapUsed);
  lowestHeap = Number.POSITIVE_INFINITY;
  const { user, system } = process.cpuUsage();
  return {
    ...{ rssBytes, heapBytes, storeBytes: bytesOf(folder) },
    descriptors: readdirSync("/proc/self/fd").length,
    cpuSeconds: (user + system) / 1e6,
  };
}

function bytesOf(path: string): number {
  return readdirSync(path, { recursive: true })
    .map(String)
    .filter((name) => name.includes(".sqlite"))
    .reduce((sum, name) => sum + (statSync(join(path, name), { throwIfNoEntry: false })?.size ?? 0), 0);
}
