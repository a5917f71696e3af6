import { durationFromMs, NullValue } from "@bufbuild/protobuf/wkt";
import { AttestationStep } from "@depute/contracts/depute/verifier/v1/attestation_service_pb";
import { newId, verifyObject } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toDocument, toMessage } from "../documents.ts";
import { delegator, engine, hashedOutput, signedCompletion, worker } from "../testing/contracts.ts";
import { asCaller, type Platform, refusal, startPlatform, value } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const send = (attestation: ReturnType<typeof signedCompletion>) =>
  platform.attestations.recordAttestation({ attestation: toMessage("attestation", attestation) });

test("prepares a completion, records it with the caller's signature, and verifies it step by step", async () => {
  const contract = await platform.agree();
  const draft = { ...toMessage("attestation", signedCompletion(contract.id)), signature: "" };
  const prepared = await platform.attestations.prepareAttestation({
    attestation: { ...draft, id: "", version: "", createdAt: "" },
  });
  if (prepared.attestation === undefined) throw new Error("no attestation");
  const signed = {
    ...toDocument("attestation", prepared.attestation),
    signature: Buffer.from(engine.sign(prepared.digest, worker.privateKey)).toString("base64url"),
  };
  const recorded = await send(signed);
  expect((await send(signed)).recordTime).toEqual(recorded.recordTime);
  const read = await platform.attestations.getAttestation({ attestationId: signed.id });
  expect(read.attestation).toEqual(recorded.attestation);
  const { valid, findings } = await platform.attestations.verifyAttestation({
    subject: { case: "attestationId", value: signed.id },
  });
  expect(findings.map(({ step, passed, details }) => [step, passed, details])).toEqual([
    [AttestationStep.SIGNATURE, true, ""],
    [AttestationStep.OUTPUT, true, ""],
    [AttestationStep.VERIFICATION, true, ""],
    [AttestationStep.COST, true, ""],
  ]);
  expect(valid).toBe(true);
});

test("accepts null as an output", async () => {
  const contract = await platform.agree({ outputSchema: { type: "null" } });
  const result = { success: true, output: null, costMicrocents: 0, durationMs: 0 };
  const { attestation } = await send(signedCompletion(contract.id, { result }));
  expect(attestation?.result?.output?.kind).toEqual({ case: "nullValue", value: NullValue.NULL_VALUE });
  expect(
    await platform.attestations.verifyAttestation({
      subject: { case: "attestationId", value: attestation?.id ?? "" },
    }),
  ).toMatchObject({ valid: true });
});

test("reports every failed step, not only the first", async () => {
  const contract = await platform.agree();
  const good = signedCompletion(contract.id);
  const bad = { ...good, result: { ...good.result, output: { label: 1 }, costMicrocents: 1001 } };
  const { valid, findings } = await platform.attestations.verifyAttestation({
    subject: { case: "attestation", value: toMessage("attestation", bad) },
  });
  expect(valid).toBe(false);
  expect(findings.map(({ passed }) => passed)).toEqual([false, false, false, false]);
  expect(findings.every(({ details }) => details !== "")).toBe(true);
});

test.each<[what: string, change: Parameters<typeof signedCompletion>[1], reason: string]>([
  ["a contract that is not known", { contractId: "ct_000000000000" }, "CONTRACT_NOT_FOUND"],
  ["a child that is not known", { childAttestations: ["att_000000000000"] }, "ATTESTATION_NOT_FOUND"],
  [
    "a child that occurs twice",
    { childAttestations: ["att_000000000000", "att_000000000000"] },
    "INVALID_REQUEST",
  ],
  ["a time to come", { createdAt: "2026-03-01T00:00:00Z" }, "INVALID_REQUEST"],
  [
    "a hash of another output",
    {
      result: {
        success: true,
        output: 1,
        outputHash: hashedOutput(2),
        costMicrocents: 0,
        durationMs: 0,
      },
    },
    "INVALID_REQUEST",
  ],
])("refuses and does not store: %s", async (_, change, reason) => {
  const attestation = signedCompletion((await platform.agree()).id, change);
  expect(await refusal(send(attestation))).toMatchObject({ reason });
  expect(
    await refusal(platform.attestations.getAttestation({ attestationId: attestation.id })),
  ).toMatchObject({
    reason: "ATTESTATION_NOT_FOUND",
  });
});

test("refuses a forged attestation and a different one under an existing id", async () => {
  const { id } = await platform.agree();
  const attestation = signedCompletion(id);
  expect(await refusal(send({ ...attestation, principal: delegator.principal.id }))).toMatchObject({
    reason: "SIGNATURE_INVALID",
  });
  await send(attestation);
  expect(
    await refusal(send(signedCompletion(id, { id: attestation.id, delegationId: "del_ba9876543210" }))),
  ).toMatchObject({
    reason: "ATTESTATION_EXISTS",
  });
});

test("lists a contract's attestations in pages, oldest first", async () => {
  const { id: contractId } = await platform.agree();
  const ids: string[] = [];
  for (let i = 0; i < 3; i++) {
    platform.clock.advance(1);
    const attestation = signedCompletion(contractId, { childAttestations: [...ids] });
    await send(attestation);
    ids.push(attestation.id);
  }
  const first = await platform.attestations.listAttestations({ contractId, pageSize: 2 });
  const second = await platform.attestations.listAttestations({
    contractId,
    pageSize: 2,
    pageToken: first.nextPageToken,
  });
  expect([...first.attestations, ...second.attestations].map(({ id }) => id)).toEqual(ids);
  expect(second.nextPageToken).toBe("");
  const other = await platform.agree();
  expect(
    await refusal(
      platform.attestations.listAttestations({ contractId: other.id, pageToken: first.nextPageToken }),
    ),
  ).toMatchObject({
    reason: "PAGE_TOKEN_INVALID",
  });
});

test("attests an output under the verifier's key, passed or not", async () => {
  const { id: contractId } = await platform.agree();
  const { principal } = await platform.attestations.getVerifier({});
  for (const [label, passed] of [
    ["good", true],
    [7, false],
  ] as const) {
    const output = { label };
    const { attestation } = await platform.attestations.attestOutput({
      requestId: `attest ${label}`,
      contractId,
      delegationId: "del_0123456789ab",
      output: value(output),
      costMicrocents: 3n,
      duration: durationFromMs(4),
    });
    if (attestation === undefined) throw new Error("no attestation");
    const document = toDocument("attestation", attestation);
    expect(verifyObject(engine, "attestation", document)).toMatchObject({ ok: true });
    expect(document).toMatchObject({
      principal,
      type: "delegation_verification",
      result: {
        success: passed,
        outputHash: hashedOutput(output),
        verificationOutcome: { method: "schema_match", passed },
      },
    });
    expect(document.result).not.toHaveProperty("output");
    const verify = (sentOutput: number | typeof output | undefined) =>
      platform.attestations.verifyAttestation({
        subject: { case: "attestationId", value: document.id },
        ...(sentOutput === undefined ? {} : { output: value(sentOutput) }),
      });
    expect((await verify(output)).valid).toBe(passed);
    expect((await verify(1)).findings[1]).toMatchObject({
      passed: false,
      details: expect.stringContaining("hash"),
    });
    expect((await verify(undefined)).findings.map((finding) => finding.passed)).toEqual([
      true,
      false,
      false,
      true,
    ]);
  }
});

test("a request id identifies one request of one caller", async () => {
  const { id: contractId } = await platform.agree();
  const request = {
    requestId: newId("att"),
    contractId,
    delegationId: "del_0123456789ab",
    output: value({ label: "good" }),
  };
  const attest = async (change: object = {}, caller?: typeof worker) =>
    (await platform.attestations.attestOutput({ ...request, ...change }, caller && asCaller(caller)))
      .attestation?.id;
  const [first, second] = await Promise.all([attest(), attest()]);
  expect(second).toBe(first);
  platform.clock.advance(1000);
  expect(await attest()).toBe(first);
  expect(await refusal(attest({ costMicrocents: 1n }))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  expect(await refusal(attest({ output: value({ label: "bad" }) }))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await attest({}, worker)).not.toBe(first);
  expect((await platform.attestations.listAttestations({ contractId })).attestations).toHaveLength(2);
});
