import { afterAll, beforeAll, expect, test } from "vitest";
import type { VerificationSpec } from "./rules/documents.ts";
import { check, signedContract } from "./testing/contracts.ts";
import { doublingSchema, SLOW_VALUE } from "./testing/hostile.ts";
import { message, type Platform, refusal, startPlatform, value } from "./testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

test("V1: a pattern that takes for ever elsewhere is answered before its deadline", async () => {
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

test("V2: a schema that takes for ever is stopped at its deadline; others are answered meanwhile", async () => {
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
  expect(await stuck).toMatchObject({ reason: "CHECK_TIMEOUT", metadata: { limit_ms: "1000" } });
  const attested = platform.attestations.attestOutput({
    requestId: "stuck",
    contractId,
    delegationId: "del_0123456789ab",
    output: value(SLOW_VALUE),
  });
  expect(await refusal(attested)).toMatchObject({ reason: "CHECK_TIMEOUT" });
  expect((await platform.attestations.listAttestations({ contractId })).attestations).toEqual([]);
});

test("V3: no composite passes by having nothing to do, or by weights that are none", async () => {
  for (const verification of [
    { method: "composite", mode: "majority", steps: [] },
    { method: "composite", mode: "weighted", steps: [{ method: "schema_match" }], weights: [0.5] },
  ] satisfies VerificationSpec[]) {
    const contract = signedContract({ verification });
    expect(await refusal(platform.contracts.createContract({ contract: message(contract) }))).toMatchObject({
      reason: "INVALID_REQUEST",
    });
  }
});

test("V4: what every object inherits is no field of an output", async () => {
  const { id: contractId } = await platform.agree({
    verification: check("field_exists", { fields: ["__proto__", "constructor"] }),
    outputSchema: true,
  });
  const judge = async (json: string) =>
    (await platform.verification.checkOutput({ contractId, output: value(JSON.parse(json)) })).result?.passed;
  expect(await judge("{}")).toBe(false);
  expect(await judge('{"__proto__":1,"constructor":2}')).toBe(true);
});

test("V5: an output over 1 MiB is refused before anything is done with it", async () => {
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
