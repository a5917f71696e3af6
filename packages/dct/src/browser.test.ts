import { existsSync, readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s(?!type\s)[^;]*?from\s+"([^"]+)"|(?:^|\n)import\s+"([^"]+)"|import\("([^"]+)"\)/g;

/** Returns the workspace modules that a module imports, directly and indirectly, without imports of types. */
function importsOf(file: string, seen = new Map<string, Set<string>>()): Map<string, Set<string>> {
  if (seen.has(file)) return seen;
  const found = new Set<string>();
  seen.set(file, found);
  for (const [, a, b, c] of readFileSync(file, "utf8").matchAll(IMPORT)) {
    const name = (a ?? b ?? c) as string;
    found.add(name);
    const next = name.startsWith(".") ? resolve(dirname(file), name) : workspaceFile(name);
    if (next !== undefined) importsOf(next, seen);
  }
  return seen;
}

function workspaceFile(name: string): string | undefined {
  if (name !== "@depute/core") return undefined;
  return fileURLToPath(import.meta.resolve(name));
}

const index = fileURLToPath(new URL("./index.ts", import.meta.url));
const native = fileURLToPath(new URL("./engine/native.ts", import.meta.url));

test("the package runs in a browser: neither Node modules nor native code, except under ./native", () => {
  const files = importsOf(index);
  expect(files.size).toBeGreaterThan(20);
  expect([...files.keys()].every(existsSync)).toBe(true);
  const names = [...files.values()].flatMap((imports) => [...imports]);
  expect(names.filter((name) => name.startsWith("node:") || name === "sodium-native")).toEqual([]);
  expect(names).toContain("@noble/ed25519");
  expect([...(importsOf(native).get(native) ?? [])]).toContain("sodium-native");
});

const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm;
const NODE_GLOBAL = /\b(Buffer|process|require)\b[.(]/;

test("no file uses Buffer, process or require", () => {
  expect("const bytes = Buffer.from(text);".replace(COMMENT, "")).toMatch(NODE_GLOBAL);
  for (const file of importsOf(index).keys()) {
    if (!file.includes("/dct/")) continue;
    expect(readFileSync(file, "utf8").replace(COMMENT, ""), file).not.toMatch(NODE_GLOBAL);
  }
});
