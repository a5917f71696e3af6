import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";

const ADAPTERS_MAY = [
  "setTimeout(() => {}, 1);",
  "setImmediate(() => {});",
  "export const ms = performance.now();",
  "export const ms = Date.now();",
  "export const now = new Date();",
  "export const random = Math.random;",
  "export const s = AbortSignal.timeout(1000);",
  "export const id = crypto.randomUUID();",
  'import { performance } from "node:perf_hooks";\nexport const p = performance;',
  'import { systemClock } from "@depute/core";\nexport const c = systemClock;',
  'import { systemTimers } from "@depute/core";\nexport const t = systemTimers;',
  'import { randomBytes } from "node:crypto";\nexport const b = randomBytes(2);',
  'import { readFileSync } from "node:fs";\nexport const f = readFileSync;',
  'import { connect } from "node:net";\nexport const c = connect;',
  'import { createServer } from "node:http2";\nexport const s = createServer;',
  'import { Worker } from "node:worker_threads";\nexport const w = Worker;',
  'import { spawn } from "node:child_process";\nexport const s = spawn;',
];

const EVERY_FILE_MAY = [
  "export const at = (ms: number) => new Date(ms);",
  'import { isIP } from "node:net";\nexport const ip = isIP;',
  'import { createHash } from "node:crypto";\nexport const h = createHash;',
];

const ENGINE = "services/tasks/src/core/engine";
const DRIVER = "packages/store/src/sqlite";

const root = mkdtempSync(join(tmpdir(), "ambient-"));
afterAll(() => rmSync(root, { recursive: true }));

/** The sample files that Biome refuses. The samples are in an engine's folder and in a driver's folder. */
let refused: ReadonlySet<string>;

beforeAll(() => {
  const config = JSON.parse(readFileSync("biome.json", "utf8")) as object;
  writeFileSync(join(root, "biome.json"), JSON.stringify({ ...config, vcs: { enabled: false } }));
  writeFileSync(join(root, "package.json"), JSON.stringify({ dependencies: { "@depute/core": "*" } }));
  for (const folder of ["tools", ENGINE, DRIVER]) mkdirSync(join(root, folder), { recursive: true });
  copyFileSync("tools/ambient.grit", join(root, "tools/ambient.grit"));
  for (const [i, source] of [...ADAPTERS_MAY, ...EVERY_FILE_MAY].entries()) {
    for (const folder of [ENGINE, DRIVER]) writeFileSync(join(root, folder, `sample${i}.ts`), source);
  }
  const options = ["lint", "--reporter=github", "--max-diagnostics=1000", "services", "packages"];
  const { stdout, error } = spawnSync(resolve("node_modules/.bin/biome"), options, {
    cwd: root,
    encoding: "utf8",
  });
  if (error !== undefined) throw error;
  refused = new Set(
    [...stdout.matchAll(/^::error .*?((?:services|packages)\/[^,]*)/gm)].map(([, file = ""]) => file),
  );
});

test.each([...ADAPTERS_MAY.entries()])("%i: only adapters may: %s", (i) => {
  expect(refused).toContain(`${ENGINE}/sample${i}.ts`);
  expect(refused).not.toContain(`${DRIVER}/sample${i}.ts`);
});

test.each([...EVERY_FILE_MAY.entries()])("%i: every file may: %s", (i) => {
  expect(refused).not.toContain(`${ENGINE}/sample${ADAPTERS_MAY.length + i}.ts`);
});
