/**
 * Installs third-party programs that only some tests and benchmarks need, before their first use. So `npm ci` does not
 * install them. Each folder of tools/on-demand/ has a package.json and its lock file.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";

const ROOT = new URL("..", import.meta.url).pathname;
const MAX_MS = 300_000;

/**
 * Returns the `node_modules` of a folder of tools/on-demand/. The lock file has the digest of every package, and no package
 * runs a script. Processes may call this function at the same time.
 *
 * @throws Error when the packages cannot be fetched
 */
export function onDemand(name: "mcp" | "packages" | "peers"): string {
  const source = join(ROOT, "tools/on-demand", name);
  const lock = createHash("sha256")
    .update(readFileSync(join(source, "package-lock.json")))
    .digest("hex");
  const folder = join(ROOT, ".generated/on-demand", `${name}-${lock.slice(0, 16)}`);
  const modules = join(folder, "node_modules");
  if (existsSync(modules)) return modules;
  const draft = `${folder}.${process.pid}`;
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { recursive: true });
  try {
    for (const file of ["package.json", "package-lock.json"])
      copyFileSync(join(source, file), join(draft, file));
    const install = ["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"];
    execFileSync("npm", install, { cwd: draft, stdio: "pipe", timeout: MAX_MS });
    if (!existsSync(modules)) renameSync(draft, folder);
  } catch (error) {
    // The rename fails if another process has already installed the packages.
    if (!existsSync(modules)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return modules;
}
