import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ManualClock } from "@depute/core";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type User, userOf } from "./depute.ts";

vi.setConfig({ testTimeout: 120_000 });

const DAY_MS = 24 * 3_600_000;

let platform: TestPlatform;
let user: User;
const clock = new ManualClock();
beforeAll(async () => {
  platform = await startPlatform([], { clock });
  user = userOf(platform.url);
  await introduce(platform, "echo", [["echo"]]);
  await vi.waitFor(async () => expect(await lines()).toHaveLength(2), { timeout: 20_000, interval: 200 });
  clock.advance(DAY_MS);
  await introduce(platform, "idle");
  await vi.waitFor(async () => expect(await lines()).toHaveLength(3), { timeout: 20_000, interval: 200 });
});
afterAll(async () => {
  user.remove();
  await platform.stop();
});

/** Exports the audit log by the RPC. */
async function lines(): Promise<string[]> {
  const all: string[] = [];
  for await (const part of platform.clients.audit.exportAuditRecords({})) all.push(...part.lines);
  return all;
}

test("lists the calls of other services", async () => {
  const { code, out } = await user.run(["audit", "list", "--source", "registry", "-o", "json"]);
  expect(code).toBe(0);
  const { records } = JSON.parse(out);
  expect(records.map(({ resource }: { resource: string }) => resource)).toEqual([
    "agents/echo",
    "agents/echo",
    "agents/idle",
  ]);
});

test("verifies a sealed day, and its seal in the transparency log", async () => {
  const verified = await vi.waitFor(
    async () => {
      const ended = await user.run(["audit", "verify"]);
      expect(ended.out).toContain("leaf ");
      return ended;
    },
    { timeout: 30_000 },
  );
  expect(verified.code, verified.err).toBe(0);
  expect(verified.out).toMatch(/^\d{4}-\d\d-\d\d, records 1 to 2: valid; leaf 0 of the log [\w-]{43}\n$/);
  expect(verified.err).toContain("1 records belong to a day that is not sealed yet");
});

test("finds a changed line in an exported file", async () => {
  const { out } = await user.run(["audit", "export"]);
  expect(out.trimEnd().split("\n")).toEqual(await lines());
  const file = join(user.folder, "audit.jsonl");
  writeFileSync(file, out);
  expect((await user.run(["audit", "verify", "--file", file])).code).toBe(0);
  writeFileSync(file, readFileSync(file, "utf8").replace("agents/echo", "agents/idle"));
  const altered = await user.run(["audit", "verify", "--file", file]);
  expect(altered.code).toBe(1);
  expect(altered.out).toContain("altered: a record was changed");
});
