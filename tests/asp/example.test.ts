import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { negotiate } from "../../examples/session/negotiate.ts";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";

const DEPUTE = new URL("../../cli/src/main.ts", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "depute-session-"));
let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
}, 60_000);
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

test("the example's agents agree repeatedly, and the command verifies their transcripts", async () => {
  const states: string[] = [];
  await negotiate(platform.url, () => {});
  const { transcript, keys } = await negotiate(platform.url, (_who, _performative, state) =>
    states.push(state),
  );
  expect(states.at(-1)).toBe("CLOSED");
  const [session, trust] = [join(folder, "session.json"), join(folder, "keys.json")];
  writeFileSync(session, JSON.stringify(transcript));
  writeFileSync(trust, JSON.stringify(keys));
  const args = [DEPUTE, "verify-transcript", session, "--trust", trust];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  expect(stdout).toMatch(/^verified: .*CLOSED, sealed$/m);
}, 60_000);
