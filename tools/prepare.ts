/** What npm runs after an installation: the contracts' code is generated, where the tools for it were installed. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";

const BUF = "node_modules/@bufbuild/buf/package.json";
const GENERATED = "packages/contracts/gen";

if (existsSync(BUF)) execFileSync(process.execPath, ["tools/generate.ts"], { stdio: "inherit" });
else if (!existsSync(GENERATED)) {
  console.log(
    "Not built: the contracts' code is missing. Run `npm ci && npm prune --omit=dev --ignore-scripts` to build without keeping the tools.",
  );
}
