import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nativeEngine } from "@depute/dct/native";
import { SettingsError } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadVerifierKey } from "./verifier-key.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-key-"));
});
afterEach(() => rmSync(folder, { recursive: true }));
const load = (configured = "") => loadVerifierKey(nativeEngine, folder, configured);

test("is made once, for its owner only, and found again", () => {
  const key = load();
  expect(statSync(join(folder, "verifier.key")).mode & 0o777).toBe(0o600);
  expect(load()).toEqual(key);
});

test("a configured file is used, and never made", () => {
  const file = join(folder, "mine");
  expect(() => load(file)).toThrow(SettingsError);
  load();
  writeFileSync(file, readFileSync(join(folder, "verifier.key")), { mode: 0o600 });
  expect(load(file)).toEqual(load());
  chmodSync(file, 0o640);
  expect(() => load(file)).toThrow(/chmod/);
});
