import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { backendOf, shell } from "./deployment.ts";
import { MAIN } from "./depute.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-store-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const LONG = 120_000;
const env = backendOf({ DEPUTE_GATEWAY_PORT: "0" });

/** Starts the platform on a data folder that `prepare` has filled. The start must fail. */
async function refusal(name: string, prepare: (dataDir: string) => void, limit = "unlimited") {
  const dataDir = join(folder, name);
  mkdirSync(dataDir);
  prepare(dataDir);
  const script = `prlimit --fsize=${limit} "${process.execPath}" "${MAIN}" start --data-dir "${dataDir}"`;
  const { code, err } = await shell([], env, script);
  return { code, err, dataDir };
}

test.each<[string, (dataDir: string) => void, string | undefined, string]>([
  [
    "corrupt",
    (dir) => writeFileSync(join(dir, "tokens.sqlite"), "x".repeat(20_000)),
    undefined,
    "it is damaged, or is not a database",
  ],
  [
    "folder",
    (dir) => mkdirSync(join(dir, "tokens.sqlite")),
    undefined,
    "it is not a file that this user can open",
  ],
  ["full", () => {}, "5000", "the disk is full, or a quota or the maximum file size is reached"],
])(
  "a start with a %s store ends with one line that names the file and the remedy",
  async (name, prepare, limit, remedy) => {
    const { code, err, dataDir } = await refusal(name, prepare, limit);
    expect(err).toMatch(/^depute: [^\n]+\n$/);
    expect(err).toContain(`${dataDir}/`);
    expect(err).toContain(`cannot be opened (`);
    expect(err).toContain(remedy);
    expect(code).toBe(1);
  },
  LONG,
);
