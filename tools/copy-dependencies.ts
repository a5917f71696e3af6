/**
 * Copies the installed packages that a package needs into a folder: `node tools/copy-dependencies.ts MANIFEST FOLDER`.
 * Optional dependencies are left out.
 */
import { cpSync, existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const [manifest = "", out = ""] = process.argv.slice(2);

const dependenciesOf = (file: string): string[] =>
  Object.keys((JSON.parse(readFileSync(file, "utf8")) as { dependencies?: object }).dependencies ?? {});

/** Returns the folder from which the files of a folder import a package. @throws Error for a package that is not installed */
function installed(name: string, folder: string): string {
  const found = join(folder, "node_modules", name);
  if (existsSync(found)) return found;
  if (folder === ".") throw new Error(`${name} is not installed: run npm ci`);
  return installed(name, dirname(folder));
}

const copied = new Set<string>();
const open = dependenciesOf(manifest).map((name) => installed(name, "."));
for (const folder of open) {
  if (copied.has(folder)) continue;
  copied.add(folder);
  const isOwn = (file: string) => !file.slice(folder.length).startsWith("/node_modules");
  cpSync(folder, join(out, folder), { recursive: true, filter: isOwn });
  open.push(...dependenciesOf(join(folder, "package.json")).map((name) => installed(name, folder)));
}
