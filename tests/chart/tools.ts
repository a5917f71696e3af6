import { execFileSync, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The module of helm, at its pinned version. Go fetches it from its module proxy. */
const MODULE = "helm.sh/helm/v3/cmd/helm@v3.22.0";

const FOLDER = new URL("../../.generated/go-bin", import.meta.url).pathname;

/** Returns the path of helm. Builds it if it is missing, which takes minutes. @throws Error without Go */
export function helmPath(): string {
  const path = join(FOLDER, "helm");
  if (existsSync(path)) return path;
  if (spawnSync("go", ["version"]).status !== 0)
    throw new Error("helm needs Go: apt-get install golang-go, or see https://go.dev/doc/install");
  execFileSync("go", ["install", MODULE], {
    env: { ...process.env, GOBIN: FOLDER },
    stdio: ["ignore", "inherit", "inherit"],
  });
  return path;
}
