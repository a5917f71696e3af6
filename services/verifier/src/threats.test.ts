import { createHash } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toMessage } from "./documents.ts";
import type { VerificationSpec } from "./rules/documents.ts";
import { check, hashedOutput, signedCompletion, signedContract } from "./testing/contracts.ts";
import { doublingSchema, SLOW_VALUE } from "./testing/hostile.ts";
import { message, type Platform, refusal, startPlatform, value } from "./testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  // The time limit of checks is long. Even a busy machine then answers the other calls before the service stops a
  // check.
  platform = await startPlatform(["--verifier-check-timeout", "6s"]);
});
afterAll(() => platform.stop());

test("V1: answers a pattern that backtracks exponentially in other engines before its deadline", async () => {
  const { id: contractId } = await platform.agree({
    outputSchema: { type: "string" },
    verification: check("regex_match", { pattern: "^(a+)+$" }),
  });
  const { result } = await platform.verification.checkOutput({
    contractId,
    output: value(`${"a".repeat(100_000)}!`),
  });
  expect(result?.passed).toBe(false);
});

test.each([
  ["look-ahead", "^(?=a)a"],
  ["look-behind", "(?<=a)b"],
  ["a back-reference", "(a)\\1"],
  ["a thousand and one repetitions", "a{1001}"],
])("V1: a pattern with %s is refused when the contract is created", async (_, pattern) => {
  for (const parts of [
    { verification: check("regex_match", { pattern }) },
    { outputSchema: { type: "string", pattern } },
  ]) {
    const contract = message(signedContract(parts));
    expect(await refusal(platform.contracts.createContract({ contract }))).toMatchObject({
      reason: "UNSUPPORTED_PATTERN",
      metadata: { pattern },
    });
  }
});

const negated = (levels: number): JsonObject => (levels === 0 ? {} : { not: negated(levels - 1) });
const doubled = (levels: number): JsonObject =>
  levels === 0 ? { type: "number" } : { anyOf: [doubled(levels - 1), doubled(levels - 1)] };
const manyProperties = (count: number): JsonObject => ({
  type: "object",
  properties: Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, { type: "string" }])),
});

test.each<[what: string, schema: JsonObject]>([
  ["2,000 properties", manyProperties(2000)],
  ["anyOf doubled 15 times", doubled(15)],
  ["more than 64 KiB", { type: "string", enum: ["x".repeat(65 * 1024)] }],
  ["a reference to elsewhere", { $ref: "https://example.com/schema.json" }],
  ["a reference to a file", { $ref: "other.json#/a" }],
])("V2: a schema of %s is refused when the contract is created", async (_, outputSchema) => {
  const contract = message(signedContract({ outputSchema }));
  expect(await refusal(platform.contracts.createContract({ contract }))).toMatchObject({
    reason: expect.stringMatching(/SCHEMA_INVALID|LIMIT_EXCEEDED|INVALID_REQUEST/),
  });
});

test("V2: refuses a schema of 33 levels before compiling it", async () => {
  const schema = value(negated(33));
  expect(await refusal(platform.verification.checkSchema({ schema }))).toMatchObject({
    reason: "SCHEMA_INVALID",
  });
  expect((await platform.verification.checkSchema({ schema: value(negated(31)) })).violations).toEqual([]);
});

test("V2: hundreds of properties within the limits do not block the event loop", async () => {
  const turns: number[] = [];
  let last = performance.now();
  const timer = setInterval(() => {
    turns.push(performance.now() - last);
    last = performance.now();
  }, 1);
  await platform.agree({ outputSchema: manyProperties(400) }).finally(() => clearInterval(timer));
  // A worker thread compiles the schema, so the event loop runs other callbacks in that time.
  expect(turns.length).toBeGreaterThan(3);
});

test("V2: stops uniqueItems over many distinct objects at the deadline", async () => {
  const { id: contractId } = await platform.agree({ outputSchema: { type: "array", uniqueItems: true } });
  const outputJson = JSON.stringify(Array.from({ length: 60_000 }, (_, i) => ({ i })));
  expect(await refusal(platform.verification.checkOutput({ contractId, outputJson }))).toMatchObject({
    reason: "CHECK_TIMEOUT",
  });
});

test("V2: keeps schemas of two tenants with the same $id apart", async () => {
  const schemaOf = (type: string): JsonObject => ({ $id: "https://tenant.example/output", type });
  const one = await platform.agree({ outputSchema: schemaOf("string") });
  const two = await platform.agree({ outputSchema: schemaOf("number") });
  const judge = async (contractId: string, output: string | number) =>
    (await platform.verification.checkOutput({ contractId, output: value(output) })).result?.passed;
  expect(await judge(one.id, "text")).toBe(true);
  expect(await judge(two.id, "text")).toBe(false);
  expect(await judge(two.id, 1)).toBe(true);
});

test("V2: inherited members do not satisfy required", async () => {
  const outputSchema = { type: "object", required: ["toString"], properties: { toString: {} } };
  const { id: contractId } = await platform.agree({ outputSchema });
  const { result } = await platform.verification.checkOutput({ contractId, output: value({}) });
  expect(result?.passed).toBe(false);
});

test("V2: $data cannot inject a pattern from the value", async () => {
  const outputSchema = {
    type: "object",
    properties: { text: { type: "string", pattern: { $data: "1/pattern" } }, pattern: { type: "string" } },
  };
  const contract = message(signedContract({ outputSchema }));
  expect(await refusal(platform.contracts.createContract({ contract }))).toMatchObject({
    reason: "SCHEMA_INVALID",
  });
});

test("V2: stops an endless schema at its deadline and answers other calls meanwhile", {
  timeout: 40_000,
}, async () => {
  const { id: contractId } = await platform.agree({ outputSchema: doublingSchema() });
  const quick = await platform.agree();
  let over = false;
  const stuck = refusal(platform.verification.checkOutput({ contractId, output: value(SLOW_VALUE) })).finally(
    () => {
      over = true;
    },
  );
  for (let i = 0; i < 5; i++) {
    const { result } = await platform.verification.checkOutput({
      contractId: quick.id,
      output: value({ label: "good" }),
    });
    expect(result?.passed).toBe(true);
  }
  expect(over).toBe(false);
  expect(await stuck).toMatchObject({ reason: "CHECK_TIMEOUT", metadata: { limit_ms: "6000" } });
  const attested = platform.attestations.attestOutput({
    requestId: "stuck",
    contractId,
    delegationId: "del_0123456789ab",
    output: value(SLOW_VALUE),
  });
  expect(await refusal(attested)).toMatchObject({ reason: "CHECK_TIMEOUT" });
  expect((await platform.attestations.listAttestations({ contractId })).attestations).toEqual([]);
});

const step: VerificationSpec = { method: "schema_match" };
const deep = (levels: number): VerificationSpec =>
  levels === 0 ? step : { method: "composite", mode: "all_pass", steps: [deep(levels - 1)] };
const wide = (levels: number): VerificationSpec =>
  levels === 0 ? step : { method: "composite", mode: "majority", steps: Array(16).fill(wide(levels - 1)) };
const weighted = (weights: number[]): VerificationSpec => ({
  method: "composite",
  mode: "weighted",
  steps: weights.map(() => step),
  weights,
});

test.each<[what: string, verification: VerificationSpec, reason?: string]>([
  ["no steps", { method: "composite", mode: "majority", steps: [] }],
  ["no steps, all of which pass", { method: "composite", mode: "all_pass", steps: [] }],
  ["no steps and no weights", { ...weighted([]), steps: [] }],
  ["one weight for two steps", { ...weighted([0.5, 0.5]), weights: [1] }],
  ["weights that add up to 0.99", weighted([0.5, 0.49])],
  ["weights of which one is negative", weighted([1.5, -0.5])],
  ["too many levels", deep(9)],
  ["too many steps", wide(3)],
  ["an unknown check", check("eval", {}), "UNKNOWN_CHECK"],
  ["a check of every object's", check("constructor", {}), "UNKNOWN_CHECK"],
])(
  "V3: a verification with %s is refused when the contract is created",
  async (_, verification, reason = "INVALID_REQUEST") => {
    const contract = signedContract({ verification });
    expect(await refusal(platform.contracts.createContract({ contract: message(contract) }))).toMatchObject({
      reason,
    });
    expect(await refusal(platform.contracts.getContract({ contractId: contract.id }))).toMatchObject({
      reason: "CONTRACT_NOT_FOUND",
    });
  },
);

test("V3: compares an expected result in canonical form", async () => {
  const { id: contractId } = await platform.agree({
    outputSchema: true,
    verification: {
      ...check("output_equals", { expected: { b: 1, a: [1.0] } }),
      expectedResult: JSON.parse('{"passed":true}'),
    },
  });
  const judge = async (json: string) =>
    (await platform.verification.checkOutput({ contractId, output: value(JSON.parse(json)) })).result?.passed;
  expect(await judge('{"a":[1],"b":1.0}')).toBe(true);
  expect(await judge('{"a":[1],"b":2}')).toBe(false);
});

test("V4: inherited members are not fields of an output", async () => {
  const { id: contractId } = await platform.agree({
    verification: check("field_exists", { fields: ["__proto__", "constructor"] }),
    outputSchema: true,
  });
  const judge = async (json: string) =>
    (await platform.verification.checkOutput({ contractId, output: value(JSON.parse(json)) })).result?.passed;
  expect(await judge("{}")).toBe(false);
  expect(await judge('{"__proto__":1,"constructor":2}')).toBe(true);
});

test("V5: refuses an output over 1 MiB before any other step", async () => {
  const { id: contractId } = await platform.agree({ outputSchema: true });
  const limit = { reason: "LIMIT_EXCEEDED", metadata: { max: String(1024 * 1024) } };
  const output = value("x".repeat(1024 * 1024));
  expect(await refusal(platform.verification.checkOutput({ contractId, output }))).toMatchObject(limit);
  expect(
    await refusal(
      platform.attestations.attestOutput({
        requestId: "big",
        contractId,
        delegationId: "del_0123456789ab",
        output,
      }),
    ),
  ).toMatchObject(limit);
  const fits = value("x".repeat(1024 * 1024 - 2));
  expect((await platform.verification.checkOutput({ contractId, output: fits })).result?.passed).toBe(true);
});

test("V5: an attestation holds an output up to 512 KiB, and only the hash of a larger one", async () => {
  const { id: contractId } = await platform.agree({ outputSchema: true });
  const record = (output: string, id: `att_${string}` = "att_0123456789ab") => {
    const result = { success: true, output, costMicrocents: 1, durationMs: 1 };
    const attestation = toMessage("attestation", signedCompletion(contractId, { id, result }));
    return platform.attestations.recordAttestation({ attestation });
  };
  const most = 512 * 1024;
  expect(await refusal(record("x".repeat(most - 1)))).toMatchObject({
    reason: "LIMIT_EXCEEDED",
    metadata: { limit: "output_bytes", max: String(most) },
    fields: ["attestation.result.output"],
  });
  expect((await record("x".repeat(most - 2))).attestation?.id).toBe("att_0123456789ab");
});

test("V5: refuses many values as a message, but accepts them as text", async () => {
  const { id: contractId } = await platform.agree({ outputSchema: true });
  const many = Array.from({ length: 100_000 }, (_, i) => ({ i }));
  const refused = { reason: "LIMIT_EXCEEDED", metadata: { limit: "fields" } };
  const { verification, attestations, results } = platform;
  expect(await refusal(verification.checkOutput({ contractId, output: value(many) }))).toMatchObject(refused);
  const heldOutput = signedCompletion(contractId, {
    result: { success: true, output: many, costMicrocents: 1, durationMs: 1 },
  });
  const attestation = toMessage("attestation", heldOutput);
  expect(await refusal(attestations.recordAttestation({ attestation }))).toMatchObject(refused);
  expect(await refusal(attestations.getAttestation({ attestationId: heldOutput.id }))).toMatchObject({
    reason: "ATTESTATION_NOT_FOUND",
  });

  const outputJson = JSON.stringify(many)
    .slice(0, 900_000)
    .replace(/,[^,]*$/, "]");
  expect((await verification.checkOutput({ contractId, outputJson })).result?.passed).toBe(true);
  const work = { requestId: "text", contractId, delegationId: "del_0123456789ab", outputJson };
  const { attestation: signed } = await attestations.attestOutput(work);
  const outputHash = hashedOutput(JSON.parse(outputJson));
  expect(signed?.result).toMatchObject({ success: true, outputHash });
  const id = signed?.id ?? "";
  const subject = { case: "attestationId", value: id } as const;
  expect((await attestations.verifyAttestation({ subject, outputJson })).valid).toBe(true);
  expect((await attestations.verifyAttestationTree({ attestationId: id, outputJson })).valid).toBe(true);
  const { hash } = await results.checkResultHash({ resultJson: outputJson });
  expect(hash).toBe(`sha256:${createHash("sha256").update(outputJson).digest("hex")}`);
  const schema = value({ type: "array", maxItems: 2 });
  expect((await verification.checkSchema({ schema, valueJson: outputJson })).violations).toHaveLength(1);
});

test.each(["", "both"])("V5: an output needs exactly one of its two fields: %j", async (both) => {
  const { id: contractId } = await platform.agree({ outputSchema: true });
  const work = { requestId: "forms", contractId, delegationId: "del_0123456789ab" };
  const outputFields = both === "" ? {} : { output: value(1), outputJson: "1" };
  expect(await refusal(platform.attestations.attestOutput({ ...work, ...outputFields }))).toMatchObject({
    reason: "INVALID_REQUEST",
    fields: [both === "" ? "output" : "output_json"],
  });
});

test.each(["{", "nothing", '"a" "b"', `[${"1,".repeat(10_000)}`])(
  "refuses a text that is not JSON: %.10s",
  async (text) => {
    const { id: contractId } = await platform.agree({ outputSchema: true });
    const { verification, attestations, results } = platform;
    const work = { requestId: "no JSON", contractId, delegationId: "del_0123456789ab" };
    const schema = value(true);
    for (const [field, call] of [
      ["output", () => verification.checkOutput({ contractId, outputJson: text })],
      ["output", () => attestations.attestOutput({ ...work, outputJson: text })],
      ["value", () => verification.checkSchema({ schema, valueJson: text })],
      ["result", () => results.checkResultHash({ resultJson: text })],
    ] as const) {
      expect(await refusal(call())).toMatchObject({ reason: "INVALID_REQUEST", fields: [field] });
    }
  },
);
