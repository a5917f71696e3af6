import { create } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { VerificationMethod } from "@depute/contracts/delegateos/v0/verification_pb";
import { SchemaDialect } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { check } from "../testing/contracts.ts";
import { type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

test("verifies an output by its contract", async () => {
  const { id: contractId } = await platform.agree({
    verification: {
      method: "composite",
      mode: "all_pass",
      steps: [{ method: "schema_match" }, check("regex_match", { pattern: "^(good|bad)$", field: "label" })],
    },
  });
  const judge = async (output: { label: string } | null) =>
    await platform.verification.checkOutput({ contractId, output: value(output) });
  const good = await judge({ label: "good" });
  expect(good.method).toBe(VerificationMethod.COMPOSITE);
  expect(good.result).toMatchObject({ passed: true, score: 1 });
  expect((await judge({ label: "ugly" })).result).toMatchObject({
    passed: false,
    details: expect.stringContaining("Step 1"),
  });
  expect((await judge(null)).result).toMatchObject({
    passed: false,
    details: "Step 0 failed: data must be object",
  });
});

test("refuses a value that is not JSON", async () => {
  const { id: contractId } = await platform.agree();
  const call = (output: ReturnType<typeof value> | undefined) =>
    refusal(platform.verification.checkOutput({ contractId, ...(output && { output }) }));
  expect(await call(undefined)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["output"] });
  expect(await call(create(ValueSchema))).toMatchObject({ reason: "INVALID_REQUEST", fields: ["output"] });
  const nan = create(ValueSchema, { kind: { case: "numberValue", value: Number.NaN } });
  expect(await call(nan)).toMatchObject({ reason: "INVALID_REQUEST", fields: ["output"] });
  expect(
    await refusal(platform.verification.checkOutput({ contractId: "ct_000000000000", output: value(1) })),
  ).toMatchObject({
    reason: "CONTRACT_NOT_FOUND",
  });
});

test("compiles a schema and validates a value", async () => {
  const schema = value({ type: "object", properties: { n: { type: "number" } }, "x-more": true });
  expect((await platform.verification.checkSchema({ schema })).violations).toEqual([]);
  expect(
    (await platform.verification.checkSchema({ schema, value: value({ n: "1" }) })).violations,
  ).toMatchObject([{ path: "/n", message: "must be number" }]);
  const tuple = value({ items: [{ type: "string" }] });
  const draft = SchemaDialect.SCHEMA_DIALECT_DRAFT_07;
  expect(
    (await platform.verification.checkSchema({ schema: tuple, value: value([1]), dialect: draft }))
      .violations,
  ).toHaveLength(1);
  expect(await refusal(platform.verification.checkSchema({ schema: tuple }))).toMatchObject({
    reason: "SCHEMA_INVALID",
    fields: ["schema"],
  });
  const pattern = value({ pattern: "(?=a)" });
  expect(await refusal(platform.verification.checkSchema({ schema: pattern }))).toMatchObject({
    reason: "UNSUPPORTED_PATTERN",
    metadata: { pattern: "(?=a)" },
  });
});

test("accepts an output as JSON text, which only the check parses", async () => {
  const { id: contractId } = await platform.agree();
  const judge = (outputJson: string, output?: ReturnType<typeof value>) =>
    platform.verification.checkOutput({ contractId, outputJson, ...(output && { output }) });
  expect((await judge('{ "label": "good" }')).result?.passed).toBe(true);
  expect((await judge("null")).result?.passed).toBe(false);
  for (const text of ["{", "undefined", "{'label':1}", " "]) {
    expect(await refusal(judge(text))).toMatchObject({ reason: "INVALID_REQUEST", fields: ["output"] });
  }
  expect(await refusal(judge("1", value(1)))).toMatchObject({
    reason: "INVALID_REQUEST",
    fields: ["output_json"],
  });
  expect(await refusal(judge(""))).toMatchObject({ reason: "INVALID_REQUEST", fields: ["output"] });
  expect(await refusal(judge(`"${"x".repeat(1024 * 1024)}"`))).toMatchObject({ reason: "INVALID_REQUEST" });
});
