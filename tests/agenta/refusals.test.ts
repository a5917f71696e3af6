import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import {
  BUYER,
  type Document,
  fresh,
  inSeconds,
  introduceAll,
  type Market,
  marketAt,
  offerOf,
  requestOf,
} from "./market.ts";

let platform: TestPlatform;
let market: Market;
let offer: JsonObject;
beforeAll(async () => {
  platform = await startPlatform();
  market = marketAt(platform.url);
  await introduceAll(platform);
  offer = await market.publish(offerOf());
});
afterAll(() => platform.stop());

const pay = (change: JsonObject) => ({
  payment: { currency: "EUR", max_amount: 1000, payment_authorization_id: "auth-0001", ...change },
});
const until = (change: JsonObject) => ({
  execution_constraints: { deadline_at: inSeconds(600), ...change },
});

/** A test case: the changes to an offer and to its request, and the code and failure mode of the refusal. */
type Case = readonly [
  name: string,
  offer: JsonObject,
  request: () => JsonObject,
  code: string,
  mode: string | undefined,
];

const CASES: readonly Case[] = [
  ["an unknown offer", {}, () => ({ offer_id: "offer-of-nobody" }), "offer_not_found", undefined],
  [
    "an unknown version",
    {},
    () => ({ offer_version: "9" }),
    "offer_version_mismatch",
    "offer_version_mismatch",
  ],
  [
    "a seller other than the offer's",
    {},
    () => ({ seller_agent_id: BUYER }),
    "invalid_request",
    "schema_validation_failure",
  ],
  ["an offer without viewers", { allowed_buyer_agents: [] }, () => ({}), "buyer_not_allowed", undefined],
  [
    "an offer for other viewers",
    { allowed_buyer_agents: ["somebody"] },
    () => ({}),
    "buyer_not_allowed",
    undefined,
  ],
  [
    "an organization that is not the buyer's",
    {},
    () => ({ buyer_agent: { agent_id: BUYER, organization_id: "org:other" } }),
    "buyer_not_allowed",
    undefined,
  ],
  [
    "an offer that is not valid yet",
    { valid_from: "2099-01-01T00:00:00Z" },
    () => ({}),
    "offer_not_found",
    undefined,
  ],
  ["another currency", {}, () => pay({ currency: "USD" }), "budget_exceeded", "budget_authorization_missing"],
  [
    "less money than the price",
    {},
    () => pay({ max_amount: 249 }),
    "budget_exceeded",
    "budget_authorization_missing",
  ],
  [
    "a smaller budget than the price",
    {},
    () => until({ max_budget: 1 }),
    "budget_exceeded",
    "budget_authorization_missing",
  ],
  [
    "a missing quote",
    { pricing: { pricing_model: "quote_required", currency: "EUR", amount: 0 } },
    () => ({}),
    "budget_exceeded",
    "budget_authorization_missing",
  ],
  [
    "a deadline in the past",
    {},
    () => until({ deadline_at: inSeconds(-1) }),
    "deadline_exceeded",
    "deadline_exceeded",
  ],
  [
    "a deadline beyond what the offer allows",
    {},
    () => until({ deadline_at: inSeconds(4000) }),
    "deadline_exceeded",
    "deadline_exceeded",
  ],
  [
    "a latest start in the past",
    {},
    () => until({ latest_start_at: inSeconds(-1) }),
    "deadline_exceeded",
    "deadline_exceeded",
  ],
  [
    "a window that is over",
    { valid_from: "2025-01-01T00:00:00Z", execution_window: { not_after: "2025-02-01T00:00:00Z" } },
    () => ({}),
    "deadline_exceeded",
    "deadline_exceeded",
  ],
  [
    "an input outside the schema",
    {},
    () => ({ input: { text: 1 } }),
    "invalid_request",
    "schema_validation_failure",
  ],
  [
    "an unknown parent",
    {},
    () => ({ parent_request_id: "request-of-nobody" }),
    "invalid_request",
    "schema_validation_failure",
  ],
];

describe("a request that is valid and refused", () => {
  test.each(CASES)(
    "for %s: a stored receipt, the same on a retry",
    async (_, change, expectedMembers, code, mode) => {
      const publishedOffer = await market.publish(offerOf(change));
      const request = requestOf(publishedOffer, expectedMembers());
      const receipt = await market.request(request);
      expect(receipt).toMatchObject({ status: "rejected", error: { code } });
      expect(receipt.error.details?.failure_mode).toBe(mode);
      expect(receipt.execution_id).toBeUndefined();
      expect(receipt.financials).toBeUndefined();
      expect(await market.request(request, 200)).toEqual(receipt);
      expect(await market.receipts(receipt.request_id)).toEqual([receipt]);
      expect(await market.settlement(receipt.request_id)).toEqual({
        request_id: receipt.request_id,
        state: "none",
        entries: [],
      });
      const callbacks: Document[] = [];
      for await (const { data } of market.watch(receipt.request_id)) callbacks.push(data);
      expect(callbacks).toEqual([receipt]);
    },
  );

  test("for a version that is no longer on sale, with the current one", async () => {
    const first = await market.publish(offerOf({ offer_version: "1.0" }));
    const second = await market.publish({ ...first, offer_version: "2.0", title: "Better" });
    // Both offers are on sale until the older one is withdrawn.
    expect((await market.request(requestOf(first))).status).toBe("accepted");
    const path = `/agenta/offers/${first.offer_id}/versions/1.0/withdraw`;
    expect((await market.post(path, { reason: "old" })).body).toEqual({
      offer_id: first.offer_id,
      withdrawn_versions: 1,
    });
    const receipt = await market.request(requestOf(first));
    expect(receipt.error).toMatchObject({
      code: "offer_version_mismatch",
      details: { current_version: "2.0" },
    });
    await market.post(`/agenta/offers/${first.offer_id}/withdraw`, {});
    expect((await market.request(requestOf(second))).error.code).toBe("offer_not_found");
  });

  test("at the concurrency limit: ten concurrent buyers of an offer for three get no fourth execution", async () => {
    const crowded = await market.publish(offerOf({ rate_limits: { max_concurrent_executions: 3 } }));
    const buyers = Array.from({ length: 10 }, (_, at) => ({
      agent_id: `racer-${at}`,
      organization_id: `org:racer-${at}`,
    }));
    for (const { agent_id: id, organization_id: organization } of buyers) {
      const agent = { id, version: "1.0.0", organization };
      await platform.clients.agents.registerAgent({ requestId: crypto.randomUUID(), agent });
    }
    const receipts = await Promise.all(
      buyers.map((buyer_agent) => market.request(requestOf(crowded, { buyer_agent }))),
    );
    const accepted = receipts.filter(({ status }) => status === "accepted");
    const rejected = receipts.filter(({ status }) => status === "rejected");
    expect([accepted.length, rejected.length]).toEqual([3, 7]);
    for (const { error } of rejected) {
      expect(error).toMatchObject({
        code: "capacity_unavailable",
        retryable: true,
        details: { failure_mode: "capacity_unavailable", max_concurrent_executions: 3 },
      });
    }
    await market.cancel(accepted[0].request_id);
    expect((await market.request(requestOf(crowded))).status).toBe("accepted");
    expect((await market.request(requestOf(crowded))).status).toBe("rejected");
  });

  test("for more requests in a minute than allowed", async () => {
    const busy = await market.publish(offerOf({ rate_limits: { max_requests_per_minute: 2 } }));
    const statuses = [];
    for (let i = 0; i < 4; i++) statuses.push((await market.request(requestOf(busy))).status);
    expect(statuses).toEqual(["accepted", "accepted", "rejected", "rejected"]);
  });
});

describe("a request that is not valid", () => {
  type Bad = readonly [string, (request: Document) => unknown, string];
  const bad: readonly Bad[] = [
    ["an unknown field", (request) => ({ ...request, surprise: 1 }), ""],
    [
      "a nested unknown field",
      (request) => ({ ...request, payment: { ...request.payment, tip: 1 } }),
      "/payment",
    ],
    [
      "an amount as a text",
      (request) => ({ ...request, ...pay({ max_amount: "1000" }) }),
      "/payment/max_amount",
    ],
    ["a negative amount", (request) => ({ ...request, ...pay({ max_amount: -1 }) }), "/payment/max_amount"],
    [
      "a fractional amount",
      (request) => ({ ...request, ...pay({ max_amount: 0.5 }) }),
      "/payment/max_amount",
    ],
    [
      "an amount above the range of a double",
      (request) => ({ ...request, ...pay({ max_amount: 2 ** 60 }) }),
      "/payment/max_amount",
    ],
    [
      "a currency of two letters",
      (request) => ({ ...request, ...pay({ currency: "EU" }) }),
      "/payment/currency",
    ],
    [
      "a date that does not exist",
      (request) => ({ ...request, ...until({ deadline_at: "2026-02-30T00:00:00Z" }) }),
      "/execution_constraints/deadline_at",
    ],
    [
      "a time without an offset",
      (request) => ({ ...request, requested_at: "2026-02-01T00:00:00" }),
      "/requested_at",
    ],
    ["an id of other characters", (request) => ({ ...request, request_id: "request 1" }), "/request_id"],
    ["an id that is too short", (request) => ({ ...request, idempotency_key: "key" }), "/idempotency_key"],
    [
      "another protocol",
      (request) => ({ ...request, protocol_version: "agenta.delegation.v1" }),
      "/protocol_version",
    ],
    ["another message", (request) => ({ ...request, message_type: "offer" }), "/message_type"],
    ["an input that is not an object", (request) => ({ ...request, input: [] }), "/input"],
    ["metadata with nested values", (request) => ({ ...request, metadata: { a: {} } }), "/metadata/a"],
    ["nothing", () => ({}), ""],
    ["a list", () => [], ""],
    ["null", () => null, ""],
  ];

  test.each(bad)("for %s: 400 with the path, and nothing stored", async (_, change, path) => {
    const request = requestOf(offer);
    const { status, body } = await market.post("/agenta/execution_requests", change(request));
    expect([status, body.error.code, body.error.retryable]).toEqual([400, "invalid_request", false]);
    expect(body.error.details).toMatchObject({ failure_mode: "schema_validation_failure", path });
    const foundReceipt = await market.send(`/agenta/execution_requests/${request.request_id}`);
    expect(foundReceipt.status).toBe(404);
    // The refused request did not use up the idempotency key.
    expect((await market.request(request)).status).toBe("accepted");
  });

  test.each([
    ["{", 400],
    ["", 400],
    ['{"a":1e999}', 400],
    ["\ufeff{}", 400],
    [`{"a":${"[".repeat(1000)}${"]".repeat(1000)}}`, 413],
    [`"${"x".repeat(5_000_000)}"`, 413],
  ])("for a body that is no document: %#", async (text, status) => {
    const answer = await market.post("/agenta/execution_requests", text);
    expect([answer.status, answer.body.error.code]).toEqual([status, "invalid_request"]);
  });

  test("in another content type than JSON", async () => {
    const answer = await market.send("/agenta/execution_requests", { method: "POST", body: "{}" });
    expect(answer.status).toBe(415);
  });

  test("for an id or a key of another request", async () => {
    const request = requestOf(offer);
    const receipt = await market.request(request);
    for (const other of [
      { ...request, metadata: { a: 1 } },
      { ...request, request_id: fresh("request") },
      { ...request, idempotency_key: fresh("key") },
    ]) {
      const { status, body } = await market.post("/agenta/execution_requests", other);
      expect([status, body.error.code, body.error.details.reason]).toEqual([
        409,
        "invalid_request",
        "REQUEST_ID_REUSED",
      ]);
    }
    // Members in another order make the same request.
    const reversed = Object.fromEntries(Object.entries(request).reverse());
    expect(await market.request(reversed, 200)).toEqual(receipt);
    expect(await market.receipts(receipt.request_id)).toHaveLength(1);
  });

  test("sent many times at once is one execution", async () => {
    const request = requestOf(offer);
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => market.post("/agenta/execution_requests", request)),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.receipt_id)).size).toBe(1);
  });
});
