import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { run } from "./published.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-protoc-"));
const protos = join(folder, "protos");

/** The published contracts, without google's messages, whose code the libraries of each language contain. */
const contracts = () => globSync("**/*.proto", { cwd: protos, exclude: ["google/**"] }).sort();

const hasProtoc = spawnSync("protoc", ["--version"]).status === 0;
if (!hasProtoc) {
  const lack = "protoc is not on the PATH; run: apt-get install protobuf-compiler";
  if (process.env.CI === "true") throw new Error(`${lack}: with CI=true its tests may not be skipped.`);
  // biome-ignore lint/suspicious/noConsole: what is not tested has to be seen by the person who runs it
  console.warn(`\n*** ${lack}: THE BUNDLE IS NOT TESTED WITH PROTOC. ***\n`);
}

beforeAll(() => {
  run(process.execPath, ["tools/bundle.ts", protos]);
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true }));

/**
 * Generates the code of a language with protoc and no other tool, and returns the files. protoc fails if two
 * contracts generate the same file.
 */
function generated(language: string, option = ""): string[] {
  const out = join(folder, language);
  mkdirSync(out);
  run("protoc", ["-I", protos, `--${language}_out=${option}${out}`, ...contracts()]);
  return globSync("**/*.*", { cwd: out });
}

describe.skipIf(!hasProtoc)("plain protoc reads the bundle", () => {
  test("for Java: no two classes differ only in case", () => {
    const files = generated("java");
    expect(files).toContain("dev/depute/tasks/v1/Task.java");
    expect(new Set(files.map((file) => file.toLowerCase())).size).toBe(files.length);
  });

  test("for C#: one file for each contract", () => {
    expect(generated("csharp")).toHaveLength(contracts().length);
  });

  test("for Python: one module for each contract", () => {
    expect(generated("python")).toHaveLength(contracts().length);
  });
});
