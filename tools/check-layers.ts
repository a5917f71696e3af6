/** Part of `npm run lint`: prints `file:line: rule` for each import that leaves its room. */
import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { checkLayers, type Manifest, type Repository } from "./layers.ts";

const NOT_OURS = (name: string) => name === "node_modules" || name === "gen" || name.startsWith(".");

function readRepository(): Repository {
  const root = JSON.parse(readFileSync("package.json", "utf8")) as Manifest & { workspaces: string[] };
  const manifestFiles = globSync(root.workspaces.map((pattern) => `${pattern}/package.json`));
  const manifests = new Map<string, Manifest>([["", root]]);
  for (const file of manifestFiles) {
    manifests.set(posix.dirname(file), JSON.parse(readFileSync(file, "utf8")) as Manifest);
  }
  const sources = globSync("**/*.ts", { exclude: (path) => NOT_OURS(posix.basename(path)) });
  return { manifests, files: new Map(sources.map((file) => [file, readFileSync(file, "utf8")])) };
}

const repository = readRepository();
const violations = checkLayers(repository);
for (const { file, line, rule } of violations) console.error(`${file}:${line}: ${rule}`);
if (violations.length > 0) {
  process.exitCode = 1;
} else {
  console.log(`layers: ${repository.files.size} files keep to their rooms`);
}
