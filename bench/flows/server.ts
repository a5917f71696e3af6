import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { startPlatform } from "@depute/cli";

/**
 * The whole platform as a process of its own, started with its data folder. Tells its addresses; then answers each
 * message with the source files of which a function ran since the message before, as paths below the repository.
 */

const ROOT = new URL("../../", import.meta.url);

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });

const [folder = ""] = process.argv.slice(2);
const names = ["tokens", "verifier", "registry", "tasks", "gateway"] as const;
const ports = names.flatMap((name) => [`--${name}-port`, "0"]);
process.on("disconnect", () => process.exit());
const { host } = await startPlatform({
  modules: names,
  listen: names,
  args: ["--data-dir", folder, "--log-level", "error", ...ports],
  name: "flows",
  description: "",
});
process.on("message", async () => process.send?.(await filesRun()));
process.send?.(host.urls);

async function filesRun(): Promise<string[]> {
  const { result } = await session.post("Profiler.takePreciseCoverage");
  const ran = result.filter(({ url, functions }) => isOwn(url) && functions.some(isCalled));
  return ran.map(({ url }) => relative(fileURLToPath(ROOT), fileURLToPath(url)));
}

/** Contracts are generated, and this file is no part of the platform. */
function isOwn(url: string): boolean {
  const isElsewhere = url.includes("/node_modules/") || url.includes("/gen/") || url.includes("/bench/");
  return url.startsWith(ROOT.href) && !isElsewhere;
}

/** Whether a function ran; the one without a name at the start is the module itself. */
function isCalled({
  functionName,
  ranges,
}: {
  functionName: string;
  ranges: { startOffset: number; count: number }[];
}) {
  const [whole] = ranges;
  return whole !== undefined && whole.count > 0 && (functionName !== "" || whole.startOffset > 0);
}
