import { deepStrictEqual } from "node:assert";
import { readFileSync } from "node:fs";
import { type DescMessage, fromBinary, type JsonObject, type JsonValue, toBinary } from "@bufbuild/protobuf";
import { ExecutionReceiptSchema } from "@depute/contracts/agenta/delegation/v0/execution_receipt_pb";
import { ExecutionRequestSchema } from "@depute/contracts/agenta/delegation/v0/execution_request_pb";
import { OfferSchema } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { VerificationResultSchema } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decode, decodeValid, encode, type WireReason } from "./index.ts";
import { AGENTA_MESSAGES, type AgentaMessage, agentaSchema, compile } from "./testing/agenta-schemas.ts";
import { documentsOf, type Schema } from "./testing/json-schema-arbitrary.ts";
import { META_SCHEMA } from "./testing/meta-schema-arbitrary.ts";
import { mutationsOf } from "./testing/mutations.ts";

/**
 * Maximum duration of one test in milliseconds. The limit is generous, because these tests are slow and
 * machines may be busy.
 */
const TIMEOUT_MS = 60_000;

const CONTRACTS: Record<AgentaMessage, DescMessage> = {
  offer: OfferSchema,
  execution_request: ExecutionRequestSchema,
  execution_receipt: ExecutionReceiptSchema,
  verification_result: VerificationResultSchema,
};

describe.each(AGENTA_MESSAGES)("%s", { timeout: TIMEOUT_MS }, (name) => {
  const contract = CONTRACTS[name];
  const documents = documentsOf(agentaSchema(name));

  test("accepts every document that the schema allows, and returns it equal, also through the binary form", () => {
    fc.assert(
      fc.property(documents, (document) => {
        const decoded = decodeValid(contract, document);
        if (!decoded.ok) throw new Error(JSON.stringify(decoded.errors));
        same(encode(contract, decoded.message), document);
        const again = fromBinary(contract, toBinary(contract, decoded.message));
        same(encode(contract, again), document);
      }),
      { numRuns: 150 },
    );
  });

  test("refuses a document changed in one place exactly when the schema refuses it", () => {
    const allows = compile(expressible(agentaSchema(name)) as Schema);
    fc.assert(
      fc.property(documents.chain(mutationsOf), (document) => {
        const decoded = decodeValid(contract, document);
        if (decoded.ok !== allows(document)) {
          throw new Error(JSON.stringify(decoded.ok ? allows.errors : decoded.errors));
        }
        if (decoded.ok) same(encode(contract, decoded.message), document);
      }),
      { numRuns: 300 },
    );
  });
});

/**
 * Asserts that two values are equal as JSON, including `-0` and `__proto__` members. Parsed objects have a prototype;
 * generated ones may lack it.
 */
function same(actual: JsonValue, expected: JsonValue): void {
  deepStrictEqual(structuredClone(actual), structuredClone(expected));
}

/**
 * Returns the part of a schema that protobuf contracts can express. Integers end at 2^53-1, the largest that
 * every JSON parser reads exactly. A schema within an offer is only checked to be an object or a boolean.
 */
function expressible(schema: JsonValue): JsonValue {
  if (Array.isArray(schema)) return schema.map(expressible);
  if (typeof schema !== "object" || schema === null) return schema;
  if (schema.$ref === META_SCHEMA) return { type: ["object", "boolean"] };
  const inner = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, expressible(value)]));
  return schema.type === "integer" ? { ...inner, maximum: Number.MAX_SAFE_INTEGER } : inner;
}

type Change = [path: string, value: JsonValue | undefined];
type Refusal = [pointer: string, reason: WireReason, rule?: string];

/** Each case is a complete fixture in which one member is set, or removed if the value is undefined. */
const REFUSED: [AgentaMessage, Change, Refusal][] = [
  // Required members that are absent.
  ["offer", ["offer_id", undefined], ["/offer_id", "missing_member"]],
  ["offer", ["seller_agent", undefined], ["/seller_agent", "missing_member", "required"]],
  ["offer", ["input_schema", undefined], ["/input_schema", "missing_member", "required"]],
  ["offer", ["pricing.amount", undefined], ["/pricing/amount", "missing_member"]],
  [
    "offer",
    ["verification_policy.required_artifacts", undefined],
    ["/verification_policy/required_artifacts", "missing_member"],
  ],
  ["execution_request", ["input", undefined], ["/input", "missing_member", "required"]],
  ["execution_receipt", ["error.retryable", undefined], ["/error/retryable", "missing_member"]],
  ["verification_result", ["score", undefined], ["/score", "missing_member"]],
  ["verification_result", ["checks.0.description", undefined], ["/checks/0/description", "missing_member"]],
  // Members that the schema does not define.
  ["offer", ["discount", 1], ["/discount", "unknown_member"]],
  ["offer", ["seller_agent.phone", "1"], ["/seller_agent/phone", "unknown_member"]],
  [
    "execution_request",
    ["buyer_agent.endpoint", "https://b.example"],
    ["/buyer_agent/endpoint", "unknown_member"],
  ],
  ["verification_result", ["evidence.0.description", "a"], ["/evidence/0/description", "unknown_member"]],
  // Constants and enum words that are not in the schema.
  [
    "offer",
    ["protocol_version", "agenta.delegation.v1"],
    ["/protocol_version", "broken_rule", "string.const"],
  ],
  ["execution_receipt", ["message_type", "offer"], ["/message_type", "broken_rule", "string.const"]],
  ["offer", ["pricing.pricing_model", "free"], ["/pricing/pricing_model", "unknown_word"]],
  ["offer", ["pricing.pricing_model", "unspecified"], ["/pricing/pricing_model", "unknown_word"]],
  [
    "offer",
    ["verification_policy.required_artifacts", ["other"]],
    ["/verification_policy/required_artifacts/0", "broken_rule", "enum.not_in"],
  ],
  ["execution_request", ["priority", "URGENT"], ["/priority", "unknown_word"]],
  [
    "execution_request",
    ["verification_requirements.required_artifacts", ["other"]],
    ["/verification_requirements/required_artifacts/0", "broken_rule", "enum.not_in"],
  ],
  ["execution_receipt", ["error.code", "oops"], ["/error/code", "unknown_word"]],
  // Texts that break a pattern or format.
  ["offer", ["offer_id", "short"], ["/offer_id", "broken_rule", "string.pattern"]],
  ["offer", ["offer_id", "offer-sentiment-1\n"], ["/offer_id", "broken_rule", "string.pattern"]],
  [
    "offer",
    ["seller_agent.agent_id", "a".repeat(129)],
    ["/seller_agent/agent_id", "broken_rule", "string.pattern"],
  ],
  ["offer", ["pricing.currency", "eur"], ["/pricing/currency", "broken_rule", "string.pattern"]],
  [
    "offer",
    ["allowed_buyer_agents", ["agent:a", "b"]],
    ["/allowed_buyer_agents/1", "broken_rule", "string.pattern"],
  ],
  ["offer", ["valid_from", "2026-03-01"], ["/valid_from", "broken_rule", "string.pattern"]],
  ["offer", ["valid_from", "2026-03-01T24:00:00Z"], ["/valid_from", "broken_rule", "string.pattern"]],
  ["offer", ["valid_from", "2026-03-01T00:00:00"], ["/valid_from", "broken_rule", "string.pattern"]],
  ["offer", ["terms_url", "terms.html"], ["/terms_url", "broken_rule", "string.uri"]],
  ["execution_request", ["callback.url", ""], ["/callback/url", "broken_rule", "string.uri_empty"]],
  // Texts of a wrong length, counted in code points.
  ["offer", ["title", ""], ["/title", "broken_rule", "string.min_len"]],
  ["offer", ["title", "\u{1f6d2}".repeat(201)], ["/title", "broken_rule", "string.max_len"]],
  ["offer", ["description", "d".repeat(4001)], ["/description", "broken_rule", "string.max_len"]],
  [
    "execution_receipt",
    ["error.message", "m".repeat(2001)],
    ["/error/message", "broken_rule", "string.max_len"],
  ],
  // Lists with a wrong number of items or with repeated items.
  ["offer", ["capabilities", ["a", "a"]], ["/capabilities", "broken_rule", "repeated.unique"]],
  [
    "offer",
    ["capabilities", Array.from({ length: 51 }, (_, i) => `c${i}`)],
    ["/capabilities", "broken_rule", "repeated.max_items"],
  ],
  [
    "offer",
    ["verification_policy.pass_criteria", []],
    ["/verification_policy/pass_criteria", "broken_rule", "repeated.min_items"],
  ],
  ["verification_result", ["checks", []], ["/checks", "broken_rule", "repeated.min_items"]],
  [
    "verification_result",
    ["failure_reasons", Array(51).fill("r")],
    ["/failure_reasons", "broken_rule", "repeated.max_items"],
  ],
  // Numbers outside of their range.
  ["offer", ["pricing.amount", -1], ["/pricing/amount", "broken_rule", "int64.gte_lte"]],
  ["offer", ["pricing.amount", 1.5], ["/pricing/amount", "number_range"]],
  [
    "offer",
    ["service_levels.target_completion_seconds", 0],
    ["/service_levels/target_completion_seconds", "broken_rule", "int64.gte_lte"],
  ],
  ["verification_result", ["score", 1.01], ["/score", "broken_rule", "double.gte_lte"]],
  ["execution_receipt", ["usage.input_units", -0.1], ["/usage/input_units", "broken_rule", "double.gte"]],
  // Values of a wrong JSON kind.
  ["offer", ["allowed_buyer_agents", null], ["/allowed_buyer_agents", "wrong_type"]],
  ["offer", ["input_schema", "string"], ["/input_schema", "broken_rule", "agenta.schema"]],
  ["offer", ["metadata", { nested: {} }], ["/metadata", "broken_rule", "agenta.metadata.scalars"]],
  ["offer", ["metadata", { list: [1] }], ["/metadata", "broken_rule", "agenta.metadata.scalars"]],
  ["execution_request", ["input", []], ["/input", "wrong_type"]],
  ["execution_receipt", ["result", null], ["/result", "wrong_type"]],
];

const refusals = REFUSED.map(([name, [path, value], [pointer, reason, rule]]) => {
  return { name, path, value, pointer, reason, rule, why: rule ?? reason };
});

test.each(refusals)("refuses $name for its $path: $why", ({ name, path, value, pointer, reason, rule }) => {
  const document = fullFixture(name);
  expect(decodeValid(CONTRACTS[name], document).ok).toBe(true);
  set(document, path.split("."), value);
  expect(compile(agentaSchema(name))(document), "the schema refuses it too").toBe(false);
  const decoded = decodeValid(CONTRACTS[name], document);
  expect(decoded.ok ? "accepted" : decoded.error).toMatchObject({
    path: pointer,
    reason,
    ...(rule && { rule }),
  });
});

test("refuses an integer beyond 2^53-1, though the schema allows it", () => {
  const document = fullFixture("offer");
  set(document, ["pricing", "amount"], 2 ** 53);
  expect(compile(agentaSchema("offer"))(document)).toBe(true);
  expect(decode(OfferSchema, document)).toMatchObject({
    ok: false,
    error: { path: "/pricing/amount", reason: "number_range" },
  });
});

test.each(["https://[::ffff:192.0.2.1]/", "https://%AA.example/"])(
  "refuses a host unknown to protovalidate, though the schema allows it: %s",
  (url) => {
    const document = fullFixture("offer");
    set(document, ["terms_url"], url);
    expect(compile(agentaSchema("offer"))(document)).toBe(true);
    expect(decodeValid(OfferSchema, document)).toMatchObject({ ok: false, error: { path: "/terms_url" } });
  },
);

test("accepts a day beyond its month, which the schema refuses", () => {
  const document = fullFixture("offer");
  set(document, ["valid_from"], "2026-02-30T00:00:00Z");
  expect(decodeValid(OfferSchema, document).ok).toBe(true);
  expect(compile(agentaSchema("offer"))(document)).toBe(false);
});

function fullFixture(name: AgentaMessage): JsonObject {
  return JSON.parse(
    readFileSync(new URL(`../fixtures/agenta/${name}.full.json`, import.meta.url), "utf8"),
  ) as JsonObject;
}

function set(target: JsonObject, [name, ...rest]: string[], value: JsonValue | undefined): void {
  if (rest.length > 0) set(target[name as string] as JsonObject, rest, value);
  else if (value === undefined) delete target[name as string];
  else target[name as string] = value;
}
