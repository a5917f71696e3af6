import { spawnSync } from "node:child_process";
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

/** Returns the lines of the audit log, as the RPC exports them. */
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
  expect(verified.out).toMatch(/^\d{4}-\d\d-\d\d, records 1 to 2: valid; leaf 1 of the log [\w-]{43}\n$/);
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

/** Calls an RPC by JSON, without the platform's code. */
async function post(method: string, body: object): Promise<{ status: number; document: Refusal }> {
  const answer = await fetch(`${platform.url}/depute.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, document: (await answer.json()) as Refusal };
}
interface Refusal {
  readonly code?: string;
  readonly details?: readonly { readonly debug?: { readonly reason?: string; readonly metadata?: object } }[];
}
const prove = (sequence: number) => post("tokens.v1.AuditService/GetAuditRecordProof", { sequence });

test("proves a record to a program that has hashes alone, and reveals a changed one", async () => {
  const { status, document } = await prove(2);
  expect(status, JSON.stringify(document)).toBe(200);
  const check = (proof: unknown) =>
    spawnSync("python3", ["tests/cli/audit_proof.py"], { input: JSON.stringify(proof), encoding: "utf8" });
  const checked = check(document);
  expect(checked.stderr).toBe("");
  expect(checked.stdout.trim()).toBe((await lines())[1]);
  const changed = JSON.parse(JSON.stringify(document).replace("agents/echo", "agents/idle"));
  expect(check(changed).stderr).toContain("not in the seal");
  const other = JSON.parse(JSON.stringify(document).replace(/"day":"\d{4}/, '"day":"1999'));
  expect(check(other).stderr).toContain("not in the log");
});

test("prints a proof, and verifies it offline by the key of the log", async () => {
  const { document } = await post("verifier.v1.LogService/GetLogHead", {});
  const { head } = document as unknown as { head: { log: string } };
  const file = join(user.folder, "proof.json");
  writeFileSync(file, (await user.run(["audit", "prove", "1"])).out);
  const verify = (log: string) => user.run(["verify-audit-proof", file, "--log", log]);
  const valid = await verify(head.log);
  expect(valid.out, valid.err).toMatch(/^valid: \d{4}-\d\d-\d\d, \{.*"sequence":"1"/);
  expect(valid.code).toBe(0);
  const stranger = await verify("A".repeat(43));
  expect([stranger.code, stranger.out]).toEqual([1, `FAILED: the log ${head.log} is not trusted\n`]);
  writeFileSync(file, readFileSync(file, "utf8").replace("agents/echo", "agents/idle"));
  const altered = await verify(head.log);
  expect([altered.code, altered.out]).toEqual([1, expect.stringContaining("record 1 is not in the seal")]);
  writeFileSync(file, "{");
  expect((await verify(head.log)).code).toBe(2);
});

test("says why it has no proof", async () => {
  const tomorrow = `${new Date(clock.now() + DAY_MS).toISOString().slice(0, 10)}T00:00:00.000Z`;
  const day = new Date(clock.now()).toISOString().slice(0, 10);
  const open = await prove(3);
  expect(open.document).toMatchObject({ code: "failed_precondition" });
  expect(open.document.details?.[0]?.debug).toMatchObject({
    ...{ reason: "AUDIT_DAY_NOT_SEALED", metadata: { day, seal_time: tomorrow } },
  });
  const unknown = await prove(999);
  expect(unknown.status).toBe(404);
  expect(unknown.document.details?.[0]?.debug).toMatchObject({
    ...{ reason: "AUDIT_RECORD_NOT_FOUND", metadata: { sequence: "999" } },
  });
});
