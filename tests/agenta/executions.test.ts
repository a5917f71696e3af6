import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { WorkFailure, type WorkResult } from "@depute/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { ShiftedClock } from "./clock.ts";
import {
  AUDITOR,
  BUYER,
  type Document,
  inSeconds,
  introduceAll,
  type Market,
  marketAt,
  offerOf,
  requestOf,
  resultOf,
  SELLER,
} from "./market.ts";

let platform: TestPlatform;
let market: Market;
const clock = new ShiftedClock();
/** Functions that make the seller's deliveries. The input of the work names one of them. */
const deliveries = new Map<string, () => Promise<WorkResult>>();
const PAYLOAD = { type: "result_payload", uri: "data:,0.5" } as const;
const GOOD: WorkResult = { output: { score: 0.5 }, delivery: { artifacts: [PAYLOAD] } };

beforeAll(async () => {
  platform = await startPlatform([], { clock });
  market = marketAt(platform.url);
  await introduceAll(platform);
  platform.work(SELLER, async (input) => {
    const { text } = input as { text: string };
    return (await deliveries.get(text)?.()) ?? GOOD;
  });
});
afterAll(() => platform.stop());

const soon = (seconds: number) => inSeconds(seconds, clock.now());

/** Publishes an offer, requests it, and follows the receipts to the end. */
async function buy(offerChange: JsonObject = {}, requestChange: JsonObject = {}) {
  const offer = await market.publish(offerOf(offerChange));
  const request = requestOf(offer, { execution_constraints: { deadline_at: soon(600) }, ...requestChange });
  const first = await market.request(request);
  const callbacks: Document[] = [];
  for await (const { data } of market.watch(first.request_id)) callbacks.push(data);
  return { offer, request, first, told: callbacks, last: callbacks.at(-1) };
}

/** Buys like `buy`. The seller delivers the result of `work`. */
async function deliver(work: () => Promise<WorkResult>, offer: JsonObject = {}, request: JsonObject = {}) {
  const text = crypto.randomUUID();
  deliveries.set(text, work);
  return buy(offer, { input: { text }, ...request });
}

describe("a successful execution", () => {
  test("is accepted, in progress, completed and paid, with a receipt for each step", async () => {
    const { told, first, request, offer } = await buy({}, { metadata: { lot: 7, note: null, ok: true } });
    expect(told.map(({ status }) => status)).toEqual(["accepted", "in_progress", "completed"]);
    expect(new Set(told.map(({ receipt_id }) => receipt_id)).size).toBe(3);
    expect(told[0]).toEqual(first);
    const last = told[2];
    expect(last).toMatchObject({
      request_id: request.request_id,
      offer_id: offer.offer_id,
      offer_version: "1",
      seller_agent_id: SELLER,
      buyer_agent_id: BUYER,
      execution_id: first.execution_id,
      result: { score: 0.5 },
      artifacts: [{ artifact_type: "result_payload", uri: PAYLOAD.uri }],
      financials: { currency: "EUR", final_amount: 250 },
      next_action: { type: "none" },
      metadata: { lot: 7, note: null, ok: true },
    });
    expect(last.financials.payment_capture_id).toMatch(/^[A-Za-z0-9._:-]{6,128}$/);
    expect(await market.newest(first.request_id)).toEqual(last);
    expect(await market.receipts(first.request_id)).toEqual(told);
    expect((await market.send(`/agenta/execution_requests/${first.request_id}/request`)).body).toEqual(
      request,
    );
  });

  test("is a task of the seller, visible to the buyer like any other", async () => {
    const { first } = await buy();
    const name = { taskId: first.execution_id };
    const { task } = await platform.clients.tasks.getTask(name);
    expect([task?.agentId, task?.executionRequestId]).toEqual([SELLER, first.request_id]);
  });

  test("can be followed from a given receipt", async () => {
    const { first, told } = await buy();
    const rest: Document[] = [];
    for await (const { id, event, data } of market.watch(first.request_id, "1")) rest.push([id, event, data]);
    expect(rest).toEqual([
      ["2", "receipt", told[1]],
      ["3", "receipt", told[2]],
    ]);
    // The platform refuses before the stream begins, so the refusal is an HTTP status instead of an event.
    await expect(market.watch(first.request_id, "9").next()).rejects.toThrow("400");
  });

  test.each([
    [{ pricing_model: "usage_based", currency: "EUR", amount: 3, unit: "output_units" }, 4],
    [{ pricing_model: "usage_based", currency: "EUR", amount: 100, unit: "compute_seconds" }, 110],
    [{ pricing_model: "usage_based", currency: "EUR", amount: 100, unit: "input_units" }, 0],
    [{ pricing_model: "fixed", currency: "EUR", amount: 0 }, 0],
  ])("costs, by %j, %i", async (pricing, amount) => {
    const usage = { outputUnits: 1.1, computeSeconds: 1.1 };
    const { last } = await deliver(async () => ({ ...GOOD, delivery: { artifacts: [PAYLOAD], usage } }), {
      pricing,
    });
    expect(last.usage).toEqual({ output_units: 1.1, compute_seconds: 1.1 });
    expect(last.financials.final_amount).toBe(amount);
  });

  test("costs the quoted price, if the request names a quote", async () => {
    const pricing = { pricing_model: "quote_required", currency: "EUR", amount: 0 };
    const quoted = async () => ({ ...GOOD, delivery: { artifacts: [PAYLOAD], quotedAmount: 777n } });
    const { last } = await deliver(quoted, { pricing }, { metadata: { quote_id: "q-1" } });
    expect(last.financials.final_amount).toBe(777);
  });
});

describe("a delivery that violates the agreement fails", () => {
  const digest = (text: string) => `sha256:${createHash("sha256").update(text).digest("hex")}`;
  test.each<[string, WorkResult, string]>([
    ["output_schema_violation", { ...GOOD, output: { score: "high" } }, "verification_failed"],
    ["output_schema_violation", { ...GOOD, output: "high" }, "verification_failed"],
    ["required_evidence_missing", { output: { score: 1 } }, "verification_failed"],
    [
      "required_evidence_missing",
      { output: { score: 1 }, delivery: { artifacts: [{ type: "logs", uri: "data:,x" }] } },
      "verification_failed",
    ],
    [
      "required_evidence_missing",
      {
        output: { score: 1 },
        delivery: {
          artifacts: [{ type: "result_payload", uri: `urn:depute:artifact:${digest("nothing")}` }],
        },
      },
      "verification_failed",
    ],
    [
      "digest_mismatch",
      {
        output: { score: 1 },
        delivery: { artifacts: [{ type: "result_payload", uri: "data:,a", digest: digest("b") }] },
      },
      "verification_failed",
    ],
  ])("with %s", async (mode, result, code) => {
    const { last, first } = await deliver(async () => result);
    expect(last).toMatchObject({
      status: "failed",
      error: { code, retryable: false, details: { failure_mode: mode } },
      financials: { currency: "EUR", final_amount: 0 },
    });
    expect(last.result).toBeUndefined();
    expect((await market.settlement(first.request_id)).state).toBe("voided");
  });

  test("a delivery above the permitted price fails, with its computed price", async () => {
    const pricing = { pricing_model: "usage_based", currency: "EUR", amount: 10, unit: "output_units" };
    const usage = { outputUnits: 1000 };
    const { last } = await deliver(async () => ({ ...GOOD, delivery: { artifacts: [PAYLOAD], usage } }), {
      pricing,
    });
    expect(last).toMatchObject({ status: "failed", error: { code: "budget_exceeded" } });
    expect(last.financials).toEqual({ currency: "EUR", final_amount: 0 });
  });

  test("and its evidence is compared if it is stored with the platform", async () => {
    const stored = await platform.clients.results.storeArtifact({ content: Buffer.from("0.5") });
    const artifact = { type: "result_payload", uri: stored.uri, digest: stored.digest } as const;
    const { last } = await deliver(async () => ({ ...GOOD, delivery: { artifacts: [artifact] } }));
    expect(last.status).toBe("completed");
  });
});

describe("a failed task", () => {
  test.each([
    ["UPSTREAM_DEPENDENCY_FAILED", "upstream_dependency_failed", "upstream_dependency_failed"],
    ["CAPACITY_UNAVAILABLE", "capacity_unavailable", "capacity_unavailable"],
    ["DEADLINE_EXCEEDED", "deadline_exceeded", "deadline_exceeded"],
    ["OUT_OF_INK", "internal_error", undefined],
  ])("by %s has the outcome %s", async (reason, code, mode) => {
    const { last } = await deliver(async () => {
      throw new WorkFailure(reason, "it did not work", false);
    });
    expect(last.status).toBe("failed");
    expect(last.error).toMatchObject({ code, message: "it did not work", details: { reason } });
    expect(last.error.details.failure_mode).toBe(mode);
  });

  test("with a retry stays in progress", async () => {
    let tries = 0;
    const { told } = await deliver(async () => {
      tries += 1;
      if (tries < 3) throw new WorkFailure("UPSTREAM_DEPENDENCY_FAILED", "not now", true);
      return GOOD;
    });
    expect(tries).toBe(3);
    expect(told.map(({ status }) => status)).toEqual(["accepted", "in_progress", "completed"]);
  });
});

describe("verification", () => {
  const policy = (mode: string) => ({
    verification_policy: { mode, required_artifacts: ["result_payload"], pass_criteria: ["It is right."] },
  });
  const payment = { currency: "EUR", max_amount: 1000, payment_authorization_id: "auth-0001" };
  const escrow = { payment: { ...payment, escrow_required: true } };

  /** Buys, and reads receipts until the completed work waits for verification. */
  async function completed(mode: string, change: JsonObject = {}) {
    const offer = await market.publish(offerOf(policy(mode)));
    const request = requestOf(offer, { execution_constraints: { deadline_at: soon(600) }, ...change });
    const { request_id: id } = await market.request(request);
    for await (const { data } of market.watch(id)) if (data.status === "completed") return data;
    throw new Error("it did not complete");
  }

  test("by a third party: nothing is charged before it passes, and the receipts stay as they are", async () => {
    const receipt = await completed("third_party_verified", escrow);
    expect(receipt.financials).toEqual({ currency: "EUR", final_amount: 250 });
    expect(receipt.next_action).toMatchObject({ type: "await_verification", by: "verifier" });
    const id = receipt.request_id;
    expect(await market.settlement(id)).toMatchObject({
      state: "held",
      limit_amount: 1000,
      final_amount: 250,
    });
    const before = await market.receipts(id);

    const verdict = await market.verify(resultOf(receipt));
    expect(await market.receipts(id)).toEqual(before);
    const settled = await market.newest(id);
    expect(settled).toMatchObject({
      status: "completed",
      result: { score: 0.5 },
      next_action: { type: "none" },
    });
    expect(settled.receipt_id).not.toBe(receipt.receipt_id);
    const { payment_capture_id: capture } = settled.financials;
    expect(capture).toMatch(/^[A-Za-z0-9._:-]{6,128}$/);
    const settlement = await market.settlement(id);
    expect(settlement).toMatchObject({ state: "released", payment_capture_id: capture, final_amount: 250 });
    expect(settlement.entries.map(({ state, amount }: Document) => [state, amount])).toEqual([
      ["held", 1000],
      ["released", 250],
    ]);
    const statuses: string[] = [];
    for await (const { event } of market.watch(id)) statuses.push(event);
    expect(statuses).toEqual(["receipt", "receipt", "receipt", "settled_receipt"]);

    const again = await market.verify(verdict);
    expect(again).toEqual(verdict);
    expect(await market.newest(id)).toEqual(settled);
    const listed = await market.send(`/agenta/verification_results?receipt_id=${receipt.receipt_id}`);
    expect(listed.body).toEqual({ verification_results: [verdict] });
  });

  test("that fails releases the escrow", async () => {
    const receipt = await completed("third_party_verified", escrow);
    await market.verify(resultOf(receipt, { decision: "fail", failure_reasons: ["out of range"] }));
    const settled = await market.newest(receipt.request_id);
    expect(settled).toMatchObject({
      status: "completed",
      financials: { currency: "EUR", final_amount: 0 },
      error: { code: "verification_failed", details: { failure_reasons: ["out of range"] } },
    });
    expect((await market.settlement(receipt.request_id)).state).toBe("refunded");
  });

  test("that is inconclusive leaves the execution open for another one", async () => {
    const receipt = await completed("third_party_verified");
    await market.verify(resultOf(receipt, { decision: "inconclusive" }));
    expect(await market.newest(receipt.request_id)).toEqual(receipt);
    await market.verify(resultOf(receipt));
    expect((await market.settlement(receipt.request_id)).state).toBe("captured");
    const late = await market.post("/agenta/verification_results", resultOf(receipt, { decision: "fail" }));
    expect([late.status, late.body.error.details.reason]).toEqual([409, "VERIFICATION_FINAL"]);
  });

  test("is allowed for the buyer alone", async () => {
    const receipt = await completed("buyer_verified");
    expect(receipt.next_action.by).toBe("buyer");
    for (const [agent, organization] of [
      [AUDITOR, "org:audit"],
      [SELLER, "org:words"],
    ]) {
      const verifier = { verifier_agent: { agent_id: agent ?? "", organization_id: organization ?? "" } };
      const refused = await market.post("/agenta/verification_results", resultOf(receipt, verifier));
      expect([refused.status, refused.body.error.details.reason]).toEqual([403, "CONFLICT_OF_INTEREST"]);
    }
    const buyer = { verifier_agent: { agent_id: BUYER, organization_id: "org:buyer" } };
    await market.verify(resultOf(receipt, buyer));
    expect((await market.settlement(receipt.request_id)).state).toBe("captured");
  });

  test("by the seller is recorded automatically, and nothing is charged before", async () => {
    const receipt = await completed("seller_attested", {
      verification_requirements: { require_verification: true },
    });
    expect(receipt.next_action).toMatchObject({ type: "await_verification", by: "seller" });
    const callbacks: Document[] = [];
    for await (const { event, data } of market.watch(receipt.request_id)) callbacks.push([event, data]);
    const [event, settled] = callbacks.at(-1);
    expect([event, settled.financials.final_amount]).toEqual(["settled_receipt", 250]);
    const { body } = await market.send(`/agenta/verification_results?receipt_id=${receipt.receipt_id}`);
    expect(body.verification_results).toMatchObject([
      { decision: "pass", verifier_agent: { agent_id: SELLER } },
    ]);
  });

  test("that the buyer waives is not required", async () => {
    const receipt = await completed("third_party_verified", {
      verification_requirements: { require_verification: false },
    });
    expect(receipt.financials.payment_capture_id).toBeDefined();
  });

  test.each<[string, JsonObject, number, string]>([
    ["a score below the agreed one", { score: 0.5 }, 409, "EVIDENCE_INSUFFICIENT"],
    [
      "a failed check",
      { checks: [{ check_id: "abc", description: "", status: "fail" }] },
      409,
      "EVIDENCE_INSUFFICIENT",
    ],
    [
      "evidence with another digest",
      { evidence: [{ artifact_type: "logs", uri: "data:,a", digest: `sha256:${"0".repeat(64)}` }] },
      409,
      "EVIDENCE_INSUFFICIENT",
    ],
    ["another receipt's id", { receipt_id: "receipt-of-nobody" }, 404, "EXECUTION_NOT_FOUND"],
    ["another execution's id", { execution_id: "execution-of-nobody" }, 400, "INVALID_REQUEST"],
    [
      "an organization that is not the verifier's",
      { verifier_agent: { agent_id: AUDITOR, organization_id: "org:other" } },
      403,
      "CALLER_NOT_ALLOWED",
    ],
  ])("with %s is refused, and nothing is charged", async (_, change, status, reason) => {
    const receipt = await completed("third_party_verified", {
      verification_requirements: { minimum_score: 0.8 },
    });
    const refused = await market.post("/agenta/verification_results", resultOf(receipt, change));
    expect([refused.status, refused.body.error.details.reason]).toEqual([status, reason]);
    expect((await market.settlement(receipt.request_id)).state).toBe("authorized");
    expect(await market.newest(receipt.request_id)).toEqual(receipt);
  });

  test("that never arrives ends at its deadline", async () => {
    const receipt = await completed("third_party_verified", escrow);
    clock.skip(8 * 24 * 3_600_000);
    const callbacks: Document[] = [];
    for await (const { data } of market.watch(receipt.request_id)) callbacks.push(data);
    expect(callbacks.at(-1)).toMatchObject({
      error: { code: "verification_pending" },
      financials: { final_amount: 0 },
    });
    expect((await market.settlement(receipt.request_id)).state).toBe("refunded");
    const late = await market.post("/agenta/verification_results", resultOf(receipt));
    expect([late.status, late.body.error.details.reason]).toEqual([409, "EXECUTION_STATE_CONFLICT"]);
  });
});
