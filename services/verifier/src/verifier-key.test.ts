import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nativeEngine } from "@depute/dct/native";
import { keyFiles, SettingsError } from "@depute/service";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadVerifierKey } from "./verifier-key.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "depute-key-"));
});
afterEach(() => rmSync(folder, { recursive: true }));
const load = (configured = "") => loadVerifierKey(nativeEngine, keyFiles(folder), configured);

test("is created once, readable by its owner only, and found again", async () => {
  const key = await load();
  expect(statSync(join(folder, "verifier.key")).mode & 0o777).toBe(0o600);
  expect(await load()).toEqual(key);
});

test("uses a configured file and never creates it", async () => {
  const file = join(folder, "mine");
  await expect(load(file)).rejects.toThrow(SettingsError);
  await load();
  writeFileSync(file, readFileSync(join(folder, "verifier.key")), { mode: 0o600 });
  expect(await load(file)).toEqual(await load());
  chmodSync(file, 0o640);
  await expect(load(file)).rejects.toThrow(/chmod/);
});
