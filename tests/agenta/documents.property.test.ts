import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { compileAgenta } from "@depute/gateway/agenta";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
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
  resultOf,
  SELLER,
} from "./market.ts";

const KINDS = ["result_payload", "logs", "checksums", "citations", "screenshots", "trace_ids"] as const;

let platform: TestPlatform;
let market: Market;
const validate = compileAgenta();
const deliveries = new Map<string, () => Promise<Document>>();

beforeAll(async () => {
  platform = await startPlatform();
  market = marketAt(platform.url);
  await introduceAll(platform);
  platform.work(SELLER, async (input) => {
    const give = deliveries.get((input as Document).text);
    if (give === undefined) throw new Error("nothing to give");
    return give();
  });
});
afterAll(() => platform.stop());

const text = (max: number) => fc.string({ unit: "binary", maxLength: max }).filter((it) => it.isWellFormed());
/** Uses the first generator eight times of nine, so that most documents are accepted; otherwise the second. */
const mostly = <T, U>(usual: fc.Arbitrary<T>, other: fc.Arbitrary<U>) =>
  fc.oneof({ arbitrary: usual as fc.Arbitrary<T | U>, weight: 8 }, { arbitrary: other, weight: 1 });
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });
const scalar = fc.oneof(
  text(20),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.boolean(),
  fc.constant(null),
);
const metadata = fc.dictionary(
  text(10).filter((name) => name !== "__proto__"),
  scalar,
  { maxKeys: 4 },
);
const artifacts = fc.uniqueArray(fc.constantFrom(...KINDS), { maxLength: 3 });
const seconds = mostly(fc.integer({ min: 60, max: 3000 }), fc.integer({ min: -5, max: 5000 }));
const price = mostly(fc.constantFrom(0, 1, 250), fc.constant(Number.MAX_SAFE_INTEGER));
const amount = mostly(fc.constantFrom(1000, Number.MAX_SAFE_INTEGER), fc.constantFrom(0, 1));

/** Generates offers of every kind: most can be bought, some cannot. */
const offers = fc.record({
  pricing: fc.record({
    pricing_model: fc.constantFrom("fixed", "usage_based", "quote_required"),
    currency: mostly(fc.constant("EUR"), fc.constant("USD")),
    amount: price,
    unit: fc.constantFrom("input_units", "output_units", "compute_seconds"),
  }),
  verification_policy: fc.record({
    mode: fc.constantFrom("seller_attested", "buyer_verified", "third_party_verified"),
    required_artifacts: artifacts.filter((kinds) => kinds.length > 0),
    pass_criteria: fc.constant(["It is right."]),
  }),
  supports_cancellation: fc.boolean(),
  metadata: optional(metadata),
  allowed_buyer_agents: optional(mostly(fc.constantFrom([BUYER], [AUDITOR, BUYER]), fc.constant([]))),
});

/** Generates requests that follow the schema, with optional members present or absent in any mix. */
const requests = fc.record(
  {
    offer_version: mostly(fc.constant("1"), fc.constant("9")),
    correlation_id: optional(fc.constantFrom("undertaking-1", "A.b:c_d-e")),
    parent_request_id: mostly(fc.constant(undefined), fc.constant("request-of-nobody")),
    priority: optional(fc.constantFrom("low", "normal", "high", "urgent")),
    payment: fc.record({
      currency: mostly(fc.constant("EUR"), fc.constant("USD")),
      max_amount: amount,
      payment_authorization_id: fc.constant("auth-0001"),
      escrow_required: optional(fc.boolean()),
    }),
    limits: fc.record({
      deadline: seconds,
      start: optional(seconds),
      max_budget: optional(amount),
      approval: optional(fc.constant(false)),
    }),
    requirements: optional(
      fc.record({
        require_verification: optional(fc.boolean()),
        required_artifacts: optional(artifacts),
        minimum_score: optional(fc.double({ min: 0, max: 1, noNaN: true })),
      }),
    ),
    callback: optional(fc.constant({ url: "https://buyer.example/receipts", auth_reference: "" })),
    metadata: optional(
      fc.oneof(
        metadata,
        metadata.map((it) => ({ ...it, quote_id: "q-1" })),
      ),
    ),
    more: fc.dictionary(
      text(8).filter((name) => name !== "__proto__"),
      fc.jsonValue({ maxDepth: 3 }),
      { maxKeys: 3 },
    ),
  },
  { requiredKeys: ["offer_version", "payment", "limits", "more"] },
);

/** Generates a seller's deliveries, both correct and incorrect. */
const works = fc.record({
  output: mostly(fc.constant({ score: 0.5 }), fc.jsonValue({ maxDepth: 2 })),
  kinds: mostly(
    fc.constant<(typeof KINDS)[number][]>([...KINDS]),
    fc.array(fc.constantFrom(...KINDS, "other" as const), { maxLength: 8 }),
  ),
  description: optional(text(100)),
  wrong: mostly(fc.constant(false), fc.constant(true)),
  units: mostly(fc.constantFrom(0, 0.1, 1, 3.5, 5e-324), fc.constant(1e300)),
});

const verdicts = fc.record({
  decision: fc.constantFrom("pass", "fail", "inconclusive"),
  score: fc.double({ min: 0, max: 1, noNaN: true }),
  summary: optional(text(50)),
  failure_reasons: optional(fc.array(text(20), { maxLength: 3 })),
  metadata: optional(metadata),
});

const defined = (object: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as JsonObject;

test("every sent document satisfies the protocol's schemas, for any request and delivery", async () => {
  const seen = new Set<string>();
  const property = fc.asyncProperty(
    offers,
    requests,
    works,
    verdicts,
    async (offerParts, asked, work, verdict) => {
      const { supports_cancellation, ...change } = offerParts;
      const offer = await market.publish(
        offerOf({
          ...defined(change),
          service_levels: {
            target_completion_seconds: 1,
            max_completion_seconds: 3600,
            supports_cancellation,
          },
        }),
      );
      const input = { ...asked.more, text: crypto.randomUUID() };
      deliveries.set(input.text, async () => ({
        output: work.output,
        delivery: {
          artifacts: [...work.kinds].map((type) => ({
            type,
            uri: "data:,x",
            ...(work.description !== undefined && { description: work.description }),
            ...(work.wrong && { digest: `sha256:${"0".repeat(64)}` }),
          })),
          usage: { inputUnits: work.units, outputUnits: work.units, computeSeconds: work.units },
        },
      }));
      const { deadline, start, max_budget, approval } = asked.limits;
      const request = defined({
        protocol_version: "agenta.delegation.v0",
        message_type: "execution_request",
        request_id: fresh("generated"),
        offer_id: offer.offer_id,
        offer_version: asked.offer_version,
        correlation_id: asked.correlation_id,
        parent_request_id: asked.parent_request_id,
        buyer_agent: { agent_id: BUYER, organization_id: "org:buyer" },
        seller_agent_id: SELLER,
        input,
        payment: defined(asked.payment),
        execution_constraints: defined({
          deadline_at: inSeconds(deadline),
          latest_start_at: start === undefined ? undefined : inSeconds(start),
          max_budget,
          requires_human_approval_before_start: approval,
        }),
        priority: asked.priority,
        callback: asked.callback,
        verification_requirements: asked.requirements && defined(asked.requirements),
        idempotency_key: fresh("generated-key"),
        requested_at: inSeconds(0),
        metadata: asked.metadata,
      });
      // The request follows the schema, so a refusal can only concern its meaning.
      expect(validate("execution_request", request)).toEqual({ ok: true });
      // `market` checks every document that it returns against the schema.
      const first = await market.request(request);
      // The expected value passes through JSON, because JSON has no negative zero.
      expect(first.metadata).toEqual(request.metadata && JSON.parse(JSON.stringify(request.metadata)));
      let newest = first;
      const transitions: string[] = [];
      for await (const { event, data } of market.watch(first.request_id)) {
        if (event === "receipt") transitions.push(data.status);
        newest = data;
        if (data.status === "completed" && data.next_action.type === "await_verification") break;
      }
      seen.add(transitions.join(">"));
      if (newest.next_action?.type === "await_verification" && newest.next_action.by !== "seller") {
        const agent = newest.next_action.by === "buyer" ? BUYER : AUDITOR;
        const organization = agent === BUYER ? "org:buyer" : "org:audit";
        const verifier_agent = { agent_id: agent, organization_id: organization };
        const result = resultOf(newest, { ...defined(verdict), verifier_agent });
        const { status, body } = await market.post("/agenta/verification_results", result);
        expect([201, 409]).toContain(status);
        if (status === 201) expect(validate("verification_result", body)).toEqual({ ok: true });
      }
      await market.newest(first.request_id);
      expect((await market.receipts(first.request_id)).map(({ status }: Document) => status)).toEqual(
        transitions.length > 0 ? transitions : [first.status],
      );
    },
  );
  await fc.assert(property, { numRuns: 60, endOnFailure: true });
  // The test would prove nothing if every request were refused.
  expect([...seen].some((path) => path.includes("completed"))).toBe(true);
  expect([...seen]).toContain("rejected");
}, 120_000);

test("any request outside the schema is answered with the place of the fault, and nothing is stored", async () => {
  const offer = await market.publish(offerOf());
  const wrong = fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<JsonValue>;
  const members = [
    "payment",
    "input",
    "offer_id",
    "buyer_agent",
    "execution_constraints",
    "requested_at",
    "extra",
  ];
  const property = fc.asyncProperty(fc.constantFrom(...members), wrong, async (member, value) => {
    const request = {
      ...defined({
        protocol_version: "agenta.delegation.v0",
        message_type: "execution_request",
        request_id: fresh("broken"),
        offer_id: offer.offer_id,
        offer_version: "1",
        buyer_agent: { agent_id: BUYER, organization_id: "org:buyer" },
        seller_agent_id: SELLER,
        input: { text: "x" },
        payment: { currency: "EUR", max_amount: 1000, payment_authorization_id: "auth-0001" },
        execution_constraints: { deadline_at: inSeconds(600) },
        idempotency_key: fresh("broken-key"),
        requested_at: inSeconds(0),
      }),
      [member]: value,
    };
    fc.pre(!validate("execution_request", request).ok);
    const { status, body } = await market.post("/agenta/execution_requests", request);
    expect([status, body.error.code]).toEqual([400, "invalid_request"]);
    expect(body.error.details.failure_mode).toBe("schema_validation_failure");
    expect(typeof body.error.details.path).toBe("string");
    expect((await market.send(`/agenta/execution_requests/${request.request_id}`)).status).toBe(404);
  });
  await fc.assert(property, { numRuns: 60 });
}, 60_000);
