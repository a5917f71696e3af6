import { createHash } from "node:crypto";
import { globSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { publishedFiles } from "../../tools/published-files.ts";
import { GOOGLE } from "../../tools/third-party-protos.ts";
import { run } from "./published.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-bundle-"));
const protos = join(folder, "protos");

/** SHA-256 of the file with the validation rules, as the authors of protovalidate 1.2.0 publish it. */
const OFFICIAL_RULES_SHA256 = "817951eab518442950f1982be24b2c3154b214b40e42f49b915cbf5181e6ee80";

beforeAll(() => {
  run(process.execPath, ["tools/bundle.ts", protos]);
}, 120_000);

afterAll(() => rmSync(folder, { recursive: true }));

/** The path of each file below a folder, with the file's SHA-256. */
function digests(root: string, pattern: string): Record<string, string> {
  const files = globSync(pattern, { cwd: root }).sort();
  return Object.fromEntries(files.map((file) => [file, sha256(join(root, file))]));
}

const sha256 = (file: string) => createHash("sha256").update(readFileSync(file)).digest("hex");

test("the contracts are unchanged, and only google and buf have files beside them", () => {
  const contracts = Object.entries(digests(protos, "**/*.*")).filter(
    ([file]) => !/^(google|buf)\//.test(file),
  );
  expect(Object.fromEntries(contracts)).toEqual(digests("proto", "**/*.proto"));
});

test("every file of google equals that of its package, byte for byte", () => {
  const files = digests(protos, "google/**/*.proto");
  expect(Object.keys(files)).toContain("google/protobuf/descriptor.proto");
  const official = publishedFiles({ ...GOOGLE, files: Object.keys(files) });
  for (const [file, digest] of Object.entries(files)) {
    expect([file, digest]).toEqual([file, sha256(join(official, file))]);
  }
});

test("the validation rules equal the official file, byte for byte", () => {
  expect(digests(protos, "buf/**/*.proto")).toEqual({ "buf/validate/validate.proto": OFFICIAL_RULES_SHA256 });
});

test("the bundle contains every file that its files import", () => {
  const files = globSync("**/*.proto", { cwd: protos });
  const missing = files.flatMap((file) => {
    const imports = readFileSync(join(protos, file), "utf8").matchAll(/^import (?:public )?"([^"]+)";/gm);
    return [...imports].flatMap(([, path = ""]) => (files.includes(path) ? [] : [`${file}: ${path}`]));
  });
  expect(missing).toEqual([]);
});
