import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { type Document, valid } from "./market.ts";

let platform: TestPlatform;
const children: ChildProcess[] = [];
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await platform.stop();
});

/** Yields the JSON lines that a program prints. */
async function* run(program: string, ...args: string[]): AsyncGenerator<Document> {
  const file = fileURLToPath(new URL(`./programs/${program}.ts`, import.meta.url));
  const stdio = ["ignore", "pipe", "inherit"] as const;
  const child = spawn(process.execPath, [file, platform.url, ...args], { stdio: [...stdio] });
  children.push(child);
  if (child.stdout === null) throw new Error("no output");
  for await (const line of createInterface(child.stdout)) yield JSON.parse(line);
}

test("a buyer and a seller, two processes on plain HTTP, and a third party that verifies", async () => {
  const { offers } = (await run("seller").next()).value;
  for (const offer of offers) valid("offer", offer);
  const statuses: string[] = [];
  const modes = new Map<string, Document>();
  let settled: Document;
  for await (const line of run("buyer", JSON.stringify(offers))) {
    if (line.mode !== undefined) {
      modes.set(line.mode, line);
      if (line.mode !== "schema_validation_failure") valid("execution_receipt", line.body);
      continue;
    }
    const { what, receipt } = line;
    statuses.push(`${what}: ${valid("execution_receipt", receipt).status}`);
    if (receipt.next_action?.type === "await_verification") {
      expect(receipt.financials).toEqual({ currency: "EUR", final_amount: 8 });
      // The buyer passes the receipt to a third party that buyer and seller trust.
      const judgement = run("auditor", JSON.stringify(receipt), "the quick brown fox");
      const { status, result } = (await judgement.next()).value;
      expect([status, valid("verification_result", result).decision]).toEqual([201, "pass"]);
    }
    settled = receipt;
  }
  expect(statuses).toEqual([
    "requested: accepted",
    "approved: accepted",
    "receipt: accepted",
    "receipt: in_progress",
    "receipt: completed",
    "settled_receipt: completed",
    "newest: completed",
  ]);
  expect(settled).toMatchObject({
    result: { words: 4 },
    financials: { final_amount: 8 },
    next_action: { type: "none" },
  });
  expect(settled.financials.payment_capture_id).toBeDefined();

  const outcome = (mode: string) => {
    const { status, body } = modes.get(mode) ?? {};
    return [status, body.status, body.error.code, body.error.details.failure_mode];
  };
  const expected: readonly (readonly [string, number, string | undefined, string])[] = [
    ["schema_validation_failure", 400, undefined, "invalid_request"],
    ["offer_version_mismatch", 201, "rejected", "offer_version_mismatch"],
    ["budget_authorization_missing", 201, "rejected", "budget_exceeded"],
    ["capacity_unavailable", 201, "rejected", "capacity_unavailable"],
    ["upstream_dependency_failed", 201, "failed", "upstream_dependency_failed"],
    ["deadline_exceeded", 201, "expired", "deadline_exceeded"],
    ["output_schema_violation", 201, "failed", "verification_failed"],
    ["required_evidence_missing", 201, "failed", "verification_failed"],
    ["digest_mismatch", 201, "failed", "verification_failed"],
  ];
  for (const [mode, status, word, code] of expected) {
    expect([mode, ...outcome(mode)]).toEqual([mode, status, word, code, mode]);
  }
}, 60_000);
