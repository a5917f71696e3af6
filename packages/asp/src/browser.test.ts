import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const IMPORT = /(?:^|\n)\s*(?:import|export)\s(?!type\s)[^;]*?from\s+"([^"]+)"|(?:^|\n)import\s+"([^"]+)"/g;

/**
 * Returns the modules that a module imports, directly or through the workspace's packages. Imports of types are left
 * out.
 */
function importsOf(file: string, seen = new Map<string, string[]>()): Map<string, string[]> {
  if (seen.has(file)) return seen;
  const names = [...readFileSync(file, "utf8").matchAll(IMPORT)].map(([, from, bare]) => from ?? bare ?? "");
  seen.set(file, names);
  for (const name of names) {
    if (name.startsWith(".")) importsOf(resolve(dirname(file), name), seen);
    else if (name.startsWith("@depute/")) importsOf(fileURLToPath(import.meta.resolve(name)), seen);
  }
  return seen;
}

test("the package runs in a browser: it imports neither Node modules nor native code, directly or indirectly", () => {
  const imports = importsOf(fileURLToPath(new URL("./index.ts", import.meta.url)));
  const names = [...imports.values()].flat();
  expect(names).toContain("@depute/wire");
  expect(names.filter((name) => name.startsWith("node:") || name === "sodium-native")).toEqual([]);
  for (const [file] of imports) {
    if (file.includes("/asp/src/")) {
      expect(readFileSync(file, "utf8")).not.toMatch(/\b(Buffer|process|require)\b[.(]/);
    }
  }
});
