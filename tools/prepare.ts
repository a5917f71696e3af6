/**
 * npm runs this script after an installation. The script generates the contracts' code and builds the console,
 * if the tools for them are installed.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

const BUF = "node_modules/@bufbuild/buf/package.json";
const VITE = "node_modules/vite/bin/vite.js";
const GENERATED = "packages/contracts/gen";

if (existsSync(BUF)) {
  execFileSync(process.execPath, ["tools/generate.ts"], { stdio: "inherit" });
  const build = [VITE, "build", "console", "--logLevel", "warn"];
  if (existsSync(VITE)) execFileSync(process.execPath, build, { stdio: "inherit" });
} else if (!existsSync(GENERATED)) {
  console.log(
    "Not built: the contracts' code is missing. Run `npm ci && npm prune --omit=dev --ignore-scripts` to build without keeping the tools.",
  );
}
