import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { ReviewState, ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { ShiftedClock } from "./clock.ts";
import {
  AUDITOR,
  BUYER,
  type Document,
  fresh,
  inSeconds,
  introduceAll,
  type Market,
  marketAt,
  offerOf,
  requestOf,
  resultOf,
  SELLER,
} from "./market.ts";

/**
 * Texts in the form of public keys. The platform identifies callers by secrets, and each text is also its agent's
 * secret.
 */
const KEYS = {
  [BUYER]: `${"B".repeat(42)}E`,
  [SELLER]: `${"S".repeat(42)}I`,
  [AUDITOR]: `${"U".repeat(42)}M`,
};
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

const dataDir = mkdtempSync(join(tmpdir(), "depute-agenta-"));
const clock = new ShiftedClock();
let platform: TestPlatform;
let buyer: Market;
let seller: Market;
let auditor: Market;

async function start() {
  const file = join(dataDir, "credentials.json");
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  const stranger = "stranger";
  const principals = [...Object.values(KEYS), stranger];
  writeFileSync(
    file,
    JSON.stringify(principals.map((principal) => ({ principal, sha256: sha256(principal) }))),
  );
  platform = await startPlatform(["--credentials-file", file], { clock, dataDir });
  buyer = marketAt(platform.url, bearer(KEYS[BUYER]));
  seller = marketAt(platform.url, bearer(KEYS[SELLER]));
  auditor = marketAt(platform.url, bearer(KEYS[AUDITOR]));
}
beforeAll(async () => {
  await start();
  await introduceAll(platform, KEYS);
});
afterAll(async () => {
  await platform.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

const soon = (seconds: number) => inSeconds(seconds, clock.now());
const until = (change: JsonObject = {}) => ({
  execution_constraints: { deadline_at: soon(600), ...change },
});
const asParty = (id: keyof typeof KEYS) => ({ headers: bearer(KEYS[id]) });

/** Takes and starts waiting tasks of an agent, by default of the seller. */
async function takeAll(agentId: string = SELLER, capacity = 8) {
  const { workers } = platform.clients;
  const options = asParty(agentId as keyof typeof KEYS);
  const request = { agentId, worker: fresh("w"), capacity, wait: durationFromMs(1) };
  const { assignments } = await workers.takeAssignments(request, options);
  for (const { lease } of assignments) if (lease) await workers.startAssignment({ lease }, options);
  return assignments;
}

async function last(market: Market, id: string): Promise<Document> {
  let newest: Document;
  for await (const { data } of market.watch(id)) newest = data;
  return newest;
}

describe("approval before the start", () => {
  const approval = () => until({ requires_human_approval_before_start: true });
  const waiting = async (change: JsonObject = {}) => {
    const offer = await seller.publish(offerOf(change));
    return buyer.request(requestOf(offer, approval()));
  };
  const reviewOf = async (id: string) => {
    for (let tries = 0; tries < 100; tries++) {
      const { reviews } = await platform.clients.reviews.listReviews({}, asParty(BUYER));
      const review = reviews.find(({ subject }) => subject === id);
      if (review !== undefined) return review;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error("no review");
  };

  test("keeps the task from workers until it is granted", async () => {
    const receipt = await waiting();
    expect(receipt).toMatchObject({
      status: "accepted",
      next_action: { type: "manual_review", by: "buyer" },
    });
    expect(await takeAll()).toEqual([]);
    const review = await reviewOf(receipt.request_id);
    expect(await buyer.approve(receipt.request_id)).toEqual(receipt);
    expect(await buyer.approve(receipt.request_id)).toEqual(receipt);
    const [assignment] = await takeAll();
    expect(assignment?.task?.executionRequestId).toBe(receipt.request_id);
    expect((await buyer.newest(receipt.request_id)).status).toBe("in_progress");
    await expect
      .poll(async () => {
        const read = await platform.clients.reviews.getReview({ reviewId: review.id }, asParty(BUYER));
        return read.review?.state;
      })
      .toBe(ReviewState.APPROVED);
  });

  test("is granted by the buyer only, and only where required", async () => {
    const receipt = await waiting();
    const path = `/agenta/execution_requests/${receipt.request_id}/approve`;
    expect((await seller.post(path)).status).toBe(403);
    expect((await auditor.post(path)).status).toBe(404);
    const free = await buyer.request(requestOf(await seller.publish(offerOf()), until()));
    const refused = await buyer.post(`/agenta/execution_requests/${free.request_id}/approve`);
    expect([refused.status, refused.body.error.details.reason]).toEqual([409, "EXECUTION_STATE_CONFLICT"]);
    await takeAll();
  });

  test("can be granted or refused in the review queue", async () => {
    const waitingTask = await waiting();
    const { reviews } = platform.clients;
    const review = await reviewOf(waitingTask.request_id);
    await reviews.decideReview({ reviewId: review.id, verdict: ReviewVerdict.APPROVED }, asParty(BUYER));
    await expect.poll(async () => (await takeAll()).length).toBe(1);

    const refused = await waiting({
      service_levels: { target_completion_seconds: 1, max_completion_seconds: 3600 },
    });
    const other = await reviewOf(refused.request_id);
    const no = { reviewId: other.id, verdict: ReviewVerdict.REJECTED, reason: "too dear" };
    await reviews.decideReview(no, asParty(BUYER));
    expect(await last(buyer, refused.request_id)).toMatchObject({
      status: "cancelled",
      error: { code: "cancelled_by_buyer", message: "the start was not approved: too dear" },
    });
    const late = await buyer.post(`/agenta/execution_requests/${refused.request_id}/approve`);
    expect(late.status).toBe(409);
  });

  test("expires with the latest start", async () => {
    const offer = await seller.publish(offerOf());
    const limits = { requires_human_approval_before_start: true, latest_start_at: soon(60) };
    const { request_id: id } = await buyer.request(requestOf(offer, until(limits)));
    clock.skip(61_000);
    expect(await last(buyer, id)).toMatchObject({
      status: "expired",
      error: { code: "expired_before_start" },
    });
  });
});

describe("time", () => {
  test("ends executions that did not begin by the latest start; others continue", async () => {
    const offer = await seller.publish(offerOf());
    const limits = () => until({ latest_start_at: soon(60) });
    const begun = await buyer.request(requestOf(offer, limits()));
    const takenIds = (await takeAll()).map(({ task }) => task?.executionRequestId);
    expect(takenIds).toContain(begun.request_id);
    const idle = await buyer.request(requestOf(offer, limits()));
    clock.skip(61_000);
    // The worker's lease expired meanwhile, so another worker can take its work.
    const again = new Set<string | undefined>();
    const takeMore = async () => {
      for (const { task } of await takeAll()) again.add(task?.executionRequestId);
      return again;
    };
    await expect.poll(takeMore, { timeout: 5000 }).toContain(begun.request_id);
    expect(again).not.toContain(idle.request_id);
    expect(await last(buyer, idle.request_id)).toMatchObject({
      status: "expired",
      error: { code: "expired_before_start" },
      financials: { final_amount: 0 },
    });
    expect((await buyer.newest(begun.request_id)).status).toBe("in_progress");
    clock.skip(600_000);
    expect(await last(buyer, begun.request_id)).toMatchObject({
      status: "expired",
      error: { code: "deadline_exceeded", details: { failure_mode: "deadline_exceeded" } },
    });
  });

  test("makes an execution wait for the offer's window", async () => {
    const window = { execution_window: { not_before: soon(120), not_after: soon(400) } };
    const offer = await seller.publish(offerOf(window));
    const { request_id: id } = await buyer.request(requestOf(offer, until()));
    expect(await takeAll()).toEqual([]);
    clock.skip(121_000);
    expect(await takeAll()).toHaveLength(1);
    clock.skip(300_000);
    expect((await last(buyer, id)).error.code).toBe("deadline_exceeded");
  });
});

describe("delivery", () => {
  const lease = async (id: string) => {
    const { assignments } = await platform.clients.workers.takeAssignments(
      { agentId: SELLER, worker: fresh("w"), capacity: 8, wait: durationFromMs(1) },
      asParty(SELLER),
    );
    const foundLease = assignments.find(({ task }) => task?.executionRequestId === id)?.lease;
    if (foundLease === undefined) throw new Error("not taken");
    return foundLease;
  };
  const complete = (heldLease: Awaited<ReturnType<typeof lease>>) =>
    platform.clients.workers.completeAssignment(
      {
        lease: heldLease,
        output: { full: value({ score: 1 }) },
        delivery: { artifacts: [{ artifactType: ArtifactType.RESULT_PAYLOAD, uri: "data:,1" }] },
      },
      asParty(SELLER),
    );

  test("leads from accepted to completed without a start", async () => {
    const { request_id: id } = await buyer.request(requestOf(await seller.publish(offerOf()), until()));
    await complete(await lease(id));
    const statuses = (await buyer.receipts(id)).map(({ status }) => status);
    expect(statuses).toEqual(["accepted", "completed"]);
    const receipt = await buyer.newest(id);
    // Soon after the receipt, the platform records the outcome that the seller itself reported.
    const path = "/agenta/verification_results";
    const recorded = async () =>
      (await seller.send(`${path}?receipt_id=${receipt.receipt_id}`)).body.verification_results.length;
    await expect.poll(recorded, { timeout: 5000 }).toBe(1);
    const ownVerifier = { verifier_agent: { agent_id: SELLER, organization_id: "org:words" } };
    const { status, body } = await seller.post(path, resultOf(receipt, ownVerifier));
    expect([status, body.error.details.reason]).toEqual([409, "VERIFICATION_FINAL"]);
    expect(body.error.message).toContain("is final");
  });

  test("of a plain task needs a start, and the refusal names it", async () => {
    await platform.clients.tasks.createTask(
      { requestId: fresh("task"), draft: { agentId: SELLER, description: "because" } },
      asParty(SELLER),
    );
    const { assignments } = await platform.clients.workers.takeAssignments(
      { agentId: SELLER, worker: fresh("w"), capacity: 8, wait: durationFromMs(1) },
      asParty(SELLER),
    );
    const heldLease = assignments.find(({ task }) => task?.executionRequestId === "")?.lease;
    if (heldLease === undefined) throw new Error("not taken");
    await expect(complete(heldLease)).rejects.toThrow("by StartAssignment");
    await platform.clients.workers.rejectAssignment(
      { lease: heldLease, failure: { reason: "BUSY" } },
      asParty(SELLER),
    );
  });
});

describe("cancellation", () => {
  test("ends the task before and while it runs, for the buyer alone", async () => {
    const offer = await seller.publish(offerOf());
    for (const begins of [false, true]) {
      const { request_id: id } = await buyer.request(requestOf(offer, until()));
      if (begins) await takeAll();
      const path = `/agenta/execution_requests/${id}/cancel`;
      expect((await seller.post(path, {})).status).toBe(403);
      const { body } = await buyer.post(path, { reason: "changed my mind" });
      expect(body).toMatchObject({
        status: "cancelled",
        status_reason: "changed my mind",
        error: { code: "cancelled_by_buyer" },
        financials: { final_amount: 0 },
      });
      expect(await buyer.cancel(id)).toEqual(body);
      expect((await buyer.settlement(id)).state).toBe("voided");
    }
  });

  test("is refused by every call if the offer does not support it", async () => {
    const levels = { target_completion_seconds: 1, max_completion_seconds: 3600 };
    const offer = await seller.publish(offerOf({ service_levels: levels }));
    const receipt = await buyer.request(requestOf(offer, until()));
    const refused = await buyer.post(`/agenta/execution_requests/${receipt.request_id}/cancel`, {});
    expect([refused.status, refused.body.error.details.reason]).toEqual([409, "EXECUTION_STATE_CONFLICT"]);
    const cancelled = platform.clients.tasks.cancelTask({ taskId: receipt.execution_id }, asParty(BUYER));
    await expect(cancelled).rejects.toThrow("does not support cancellation");
    expect((await buyer.newest(receipt.request_id)).status).toBe("accepted");
    await takeAll();
  });

  test("is refused after the end, and for unknown executions", async () => {
    const receipt = await buyer.request(requestOf(await seller.publish(offerOf()), { offer_version: "7" }));
    const path = `/agenta/execution_requests/${receipt.request_id}/cancel`;
    expect((await buyer.post(path, {})).status).toBe(409);
    expect((await buyer.post(path, { because: "x" })).body.error.details.path).toBe("/because");
    expect((await buyer.post(path, [])).status).toBe(400);
  });
});

describe("parts of an execution", () => {
  const wholeRequest = {
    payment: { currency: "EUR", max_amount: 1000, payment_authorization_id: "auth-0001" },
  };
  const part = (parent: string, change: JsonObject = {}) => ({
    parent_request_id: parent,
    buyer_agent: { agent_id: SELLER, organization_id: "org:words" },
    seller_agent_id: AUDITOR,
    payment: { currency: "EUR", max_amount: 600, payment_authorization_id: "auth-0002" },
    ...until({ deadline_at: soon(300) }),
    ...change,
  });

  test("stay within its money and its time, and end with it", async () => {
    const { request_id: parent, execution_id } = await buyer.request(
      requestOf(await seller.publish(offerOf()), { ...wholeRequest, ...until() }),
    );
    const seller_agent = { agent_id: AUDITOR, organization_id: "org:audit" };
    const offer = await auditor.publish(offerOf({ seller_agent }));
    const first = await seller.request(requestOf(offer, part(parent)));
    expect(first.status).toBe("accepted");
    const name = { taskId: first.execution_id };
    const { task } = await platform.clients.tasks.getTask(name, asParty(SELLER));
    expect(task?.parentTaskId).toBe(execution_id);

    const second = await auditor.publish(offerOf({ seller_agent, title: "Other" }));
    const dear = await seller.request(requestOf(second, part(parent)));
    expect(dear.error).toMatchObject({ code: "budget_exceeded", details: { allowed: 400, needed: 600 } });
    const late = part(parent, { ...until({ deadline_at: soon(900) }) });
    expect((await seller.request(requestOf(second, late))).error.code).toBe("deadline_exceeded");
    const round = await seller.request(
      requestOf(offer, part(parent, { payment: { ...wholeRequest.payment, max_amount: 300 } })),
    );
    expect(round.status).toBe("accepted");
    const foreign = await buyer.request(requestOf(second, { ...part(parent), ...requestBuyer() }));
    expect(foreign.error).toMatchObject({ code: "invalid_request", details: { path: "/parent_request_id" } });

    await buyer.cancel(parent);
    expect(await last(seller, first.request_id)).toMatchObject({ status: "cancelled" });
    const over = await seller.request(requestOf(second, part(parent)));
    expect(over.error.message).toContain("has ended");
  });

  const requestBuyer = () => ({ buyer_agent: { agent_id: BUYER, organization_id: "org:buyer" } });

  test("are never assigned to their own buyer", async () => {
    const same = offerOf();
    const offer = await seller.publish(same);
    const { request_id: parent } = await buyer.request(requestOf(offer, { ...wholeRequest, ...until() }));
    const ownPart = part(parent, { seller_agent_id: SELLER });
    const receipt = await seller.request(requestOf(offer, ownPart));
    expect(receipt.error.message).toContain("repeats the work");
    await buyer.cancel(parent);
  });
});

describe("the caller", () => {
  test("acts for its own agents alone, and nothing is stored for others", async () => {
    const offer = await seller.publish(offerOf());
    const request = requestOf(offer, until());
    for (const market of [seller, auditor, marketAt(platform.url, bearer("stranger"))]) {
      const { status, body } = await market.post("/agenta/execution_requests", request);
      expect([status, body.error.code]).toEqual([403, "buyer_not_allowed"]);
      expect((await market.post("/agenta/offers", offer)).status).not.toBe(market === seller ? 0 : 201);
    }
    const wrong = marketAt(platform.url, bearer("nobody"));
    const { status, headers } = await wrong.post("/agenta/execution_requests", request);
    expect([status, headers.get("www-authenticate")]).toEqual([401, "DPoP, Bearer"]);
    expect((await buyer.request(request)).status).toBe("accepted");
    await takeAll();
  });

  test("sees only its own purchases and sales", async () => {
    const receipt = await buyer.request(requestOf(await seller.publish(offerOf()), until()));
    const id = receipt.request_id;
    expect(await seller.newest(id)).toEqual(receipt);
    for (const suffix of ["", "/receipts", "/settlement", "/request"]) {
      expect((await auditor.send(`/agenta/execution_requests/${id}${suffix}`)).status).toBe(404);
    }
    const bought = await buyer.send(`/agenta/execution_requests?buyer_agent_id=${BUYER}&limit=2`);
    expect(bought.body.receipts[0]).toEqual(receipt);
    const more = await buyer.send(
      `/agenta/execution_requests?buyer_agent_id=${BUYER}&limit=2&cursor=${bought.body.next_cursor}`,
    );
    expect(more.body.receipts).toHaveLength(2);
    const sold = await seller.send(`/agenta/execution_requests?seller_agent_id=${SELLER}`);
    expect(sold.body.receipts[0]).toEqual(receipt);
    const foreign = await auditor.send(`/agenta/execution_requests?buyer_agent_id=${BUYER}`);
    expect(foreign.status).toBe(403);
    expect(foreign.body.error.message).toContain("buyer_agent_id");
    const nobody = await auditor.send("/agenta/execution_requests");
    expect([nobody.status, nobody.body.error.message.includes("seller_agent_id")]).toEqual([400, true]);
    await takeAll();
  });

  test("verifies under its own name alone", async () => {
    const policy = { mode: "third_party_verified", required_artifacts: ["logs"], pass_criteria: ["x"] };
    const offer = await seller.publish(offerOf({ verification_policy: policy }));
    const { request_id: id } = await buyer.request(requestOf(offer, until()));
    const takenTasks = await takeAll();
    const lease = takenTasks.find(({ task }) => task?.executionRequestId === id)?.lease;
    if (lease === undefined) throw new Error("not taken");
    const artifacts = [{ artifactType: ArtifactType.LOGS, uri: "data:,done" }];
    await platform.clients.workers.completeAssignment(
      { lease, output: { full: value({ score: 1 }) }, delivery: { artifacts } },
      asParty(SELLER),
    );
    const receipt = await buyer.newest(id);
    expect(receipt.status).toBe("completed");
    const result = resultOf(receipt);
    const refused = await buyer.post("/agenta/verification_results", result);
    expect([refused.status, refused.body.error.details.reason]).toEqual([403, "CALLER_NOT_ALLOWED"]);
    // The auditor is not a party of the execution. The auditor may verify, because a party gave the receipt to
    // the auditor.
    await auditor.verify(result);
    expect((await seller.settlement(id)).state).toBe("captured");
  });
});

test("answers are equal after a restart, and open executions continue", async () => {
  const offer = await seller.publish(offerOf());
  const accepted = requestOf(offer, until());
  const rejected = requestOf(offer, { ...until(), offer_version: "9" });
  const receipts = [await buyer.request(accepted), await buyer.request(rejected)];
  await platform.stop();
  await start();
  clock.skip(25 * 3_600_000);
  expect([await buyer.request(accepted, 200), await buyer.request(rejected, 200)]).toEqual(receipts);
  const reused = await buyer.post("/agenta/execution_requests", { ...accepted, priority: "high" });
  expect(reused.status).toBe(409);
  expect((await last(buyer, accepted.request_id as string)).status).toBe("expired");
});
