import { Session } from "node:inspector/promises";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { startPlatform } from "depute";

/**
 * Runs the whole platform in a separate process and reports its addresses. The argument is the data folder. The process
 * answers each message with the source files that ran since the previous message, as paths relative to the repository.
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

/** Whether a file belongs to the platform. Generated contracts and this file do not. */
function isOwn(url: string): boolean {
  const isElsewhere = url.includes("/node_modules/") || url.includes("/gen/") || url.includes("/bench/");
  return url.startsWith(ROOT.href) && !isElsewhere;
}

/** Whether a function ran. The nameless function at the start of a file is the module itself, which does not count. */
function isCalled({
  functionName,
  ranges,
}: {
  functionName: string;
  ranges: { startOffset: number; count: number }[];
}) {
  const [firstRange] = ranges;
  return (
    firstRange !== undefined && firstRange.count > 0 && (functionName !== "" || firstRange.startOffset > 0)
  );
}
