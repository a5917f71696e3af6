import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";

const PREPARE = new URL("prepare.ts", import.meta.url).pathname;
let folder: string | undefined;
afterEach(() => {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  folder = undefined;
});

/** Returns the output of an installation without the development tools, in a clone that has these folders. */
function prepared(...folders: string[]) {
  folder = mkdtempSync(join(tmpdir(), "depute-prepare-"));
  for (const name of folders) mkdirSync(join(folder, name), { recursive: true });
  const { status, stdout, stderr } = spawnSync(process.execPath, [PREPARE], {
    cwd: folder,
    encoding: "utf8",
  });
  return [status, stdout, stderr];
}

test("an installation without the tools prints the build command in one line", () => {
  const oneLine = expect.stringMatching(/^[^\n]*npm ci && npm prune --omit=dev[^\n]*\n$/);
  expect(prepared()).toEqual([0, oneLine, ""]);
});

test("an installation without the tools prints nothing if the code is generated", () => {
  expect(prepared("packages/contracts/gen")).toEqual([0, "", ""]);
});
