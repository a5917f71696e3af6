/**
 * `npm run schema-suite`, which npm also runs before `npm test`: downloads the JSON Schema Test Suite. So no
 * third-party file is committed. No registry has the suite as a package, but the source archive of Python's
 * `jsonschema` contains the suite. pip downloads that archive by its digest. Without pip or a network, tests
 * that need the suite report that they were skipped.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FOLDER = ".generated/json-schema-test-suite";
const PINNED = "tools/json-schema-suite.txt";
const MAX_MS = 120_000;
/** Maximum number of downloads. The network may fail for a while. */
const MAX_TRIES = 3;

function bring(): void {
  const scratch = mkdtempSync(join(tmpdir(), "depute-schema-suite-"));
  try {
    const pip = ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes"];
    const options = { stdio: "pipe", timeout: MAX_MS } as const;
    execFileSync("python3", [...pip, "-r", PINNED, "-d", scratch], options);
    const archive = readdirSync(scratch).find((name) => name.endsWith(".tar.gz")) ?? "";
    execFileSync("tar", ["xzf", join(scratch, archive), "-C", scratch, "--strip-components=1"], options);
    cpSync(join(scratch, "json/tests"), FOLDER, { recursive: true });
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

for (let tries = 1; !existsSync(FOLDER) && tries <= MAX_TRIES; tries++) {
  try {
    bring();
  } catch (error) {
    const { stderr, message } = error as { stderr?: Buffer; message: string };
    const why = (stderr?.toString().trim() || message).split("\n").at(-1);
    console.warn(`The JSON Schema Test Suite could not be fetched with pip: ${why}`);
  }
}
