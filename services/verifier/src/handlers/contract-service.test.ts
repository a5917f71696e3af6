import { create } from "@bufbuild/protobuf";
import { TaskContractSchema } from "@depute/contracts/delegateos/v0/contract_pb";
import { ContractStep } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { attachObjectSignature, generateKeypair, objectSigningInput, signObject } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { toDocument } from "../documents.ts";
import type { TaskContract } from "../rules/documents.ts";
import {
  type ContractParts,
  check,
  contractBody,
  delegator,
  engine,
  signedContract,
  worker,
} from "../testing/contracts.ts";
import { asCaller, message, type Platform, refusal, startPlatform } from "../testing/platform.ts";

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

test("prepares a contract, creates it with the issuer's signature, and reads it", async () => {
  const {
    id: _id,
    createdAt: _at,
    ...draft
  } = message({ ...contractBody({ issuer: delegator.principal.id }), signature: "" });
  const prepared = await platform.contracts.prepareContract({
    contract: { ...draft, id: "", version: "", createdAt: "" },
  });
  expect(prepared.contract).toMatchObject({
    version: "0.1",
    createdAt: "2026-01-01T00:00:00.000Z",
    signature: "",
  });
  expect(prepared.contract?.id).toMatch(/^ct_[0-9a-f]{12}$/);

  const { signature: _, ...body } = toDocument("contract", prepared.contract ?? create(TaskContractSchema));
  expect(Uint8Array.from(prepared.digest)).toEqual(objectSigningInput(engine, body));
  const signature = engine.sign(prepared.digest, delegator.privateKey);
  const contract = attachObjectSignature(engine, "contract", body, signature);

  const created = await platform.contracts.createContract({ contract: message(contract) });
  const read = await platform.contracts.getContract({ contractId: contract.id });
  expect(read).toEqual({ ...read, contract: created.contract, createTime: created.createTime });
  expect(toDocument("contract", read.contract ?? create(TaskContractSchema))).toEqual(contract);
});

test("a replay of a contract has no effect, and a different contract under its id is refused", async () => {
  const contract = await platform.agree();
  const first = await platform.contracts.getContract({ contractId: contract.id });
  platform.clock.advance(1000);
  const again = await platform.contracts.createContract({ contract: message(contract) });
  expect(again.createTime).toEqual(first.createTime);
  const other = signedContract({ id: contract.id, maxBudgetMicrocents: 1 });
  expect(await refusal(platform.contracts.createContract({ contract: message(other) }))).toMatchObject({
    reason: "CONTRACT_EXISTS",
    metadata: { contract: contract.id },
  });
  expect((await platform.contracts.getContract({ contractId: contract.id })).contract).toEqual(
    first.contract,
  );
});

test.each<[what: string, change: (contract: TaskContract) => TaskContract, reason: string, field: string]>([
  [
    "changed after it was signed",
    (c) => ({ ...c, constraints: { ...c.constraints, maxBudgetMicrocents: 1 } }),
    "SIGNATURE_INVALID",
    "contract.signature",
  ],
  [
    "signed by another",
    (c) => ({ ...c, issuer: worker.principal.id }),
    "SIGNATURE_INVALID",
    "contract.signature",
  ],
  ["an id of another form", (c) => ({ ...c, id: "ct_001" }), "INVALID_REQUEST", "contract.id"],
  ["an unknown version", (c) => ({ ...c, version: "0.2" as "0.1" }), "INVALID_REQUEST", "contract.version"],
])("refuses: %s", async (_, change, reason, field) => {
  const contract = change(signedContract());
  expect(await refusal(platform.contracts.createContract({ contract: message(contract) }))).toMatchObject({
    reason,
    fields: [field],
  });
});

test.each<[what: string, parts: ContractParts, reason: string, field: string]>([
  [
    "a judge that is not configured",
    { verification: { method: "llm_judge", judgePrompt: "{output}{contract}", passThreshold: 1 } },
    "INVALID_REQUEST",
    "contract.verification.judge_model",
  ],
  [
    "an unknown check",
    { verification: check("nope", {}) },
    "UNKNOWN_CHECK",
    "contract.verification.check_name",
  ],
  ["a bad schema", { outputSchema: { type: "strin" } }, "SCHEMA_INVALID", "contract.task.output_schema"],
  [
    "a remote reference",
    { verification: { method: "schema_match", schema: { $ref: "https://example.com/s" } } },
    "SCHEMA_INVALID",
    "contract.verification.schema",
  ],
  [
    "a pattern that is not linear",
    { verification: check("regex_match", { pattern: "(a)\\1" }) },
    "UNSUPPORTED_PATTERN",
    "contract.verification.check_params.pattern",
  ],
  [
    "a pattern that is not linear, in a schema",
    { outputSchema: { type: "string", pattern: "(?=a)" } },
    "UNSUPPORTED_PATTERN",
    "contract.task.output_schema",
  ],
])("refuses and does not store: %s", async (_, parts, reason, field) => {
  const contract = signedContract(parts);
  expect(await refusal(platform.contracts.createContract({ contract: message(contract) }))).toMatchObject({
    reason,
    fields: [field],
  });
  expect(
    await refusal(platform.contracts.prepareContract({ contract: { ...message(contract), signature: "" } })),
  ).toMatchObject({ reason });
  expect(await refusal(platform.contracts.getContract({ contractId: contract.id }))).toMatchObject({
    reason: "CONTRACT_NOT_FOUND",
  });
});

test("lists contracts in pages, newest first, and only the caller's own if it has credentials", async () => {
  const issuer = generateKeypair(engine);
  const ids: string[] = [];
  for (let i = 0; i < 5; i++) {
    platform.clock.advance(1);
    const body = contractBody({ issuer: issuer.principal.id });
    const contract = signObject(engine, "contract", body, issuer);
    await platform.contracts.createContract({ contract: message(contract) });
    ids.unshift(contract.id);
  }
  const listed: (string | undefined)[] = [];
  let pageToken = "";
  do {
    const page = await platform.contracts.listContracts({
      issuer: issuer.principal.id,
      pageSize: 2,
      pageToken,
    });
    expect(page.contracts.length).toBeLessThanOrEqual(2);
    listed.push(...page.contracts.map(({ id }) => id));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(listed).toEqual(ids);

  await platform.agree();
  const issuers = async (request: object, caller?: typeof worker) =>
    new Set(
      (await platform.contracts.listContracts(request, caller && asCaller(caller))).contracts.map(
        (c) => c.issuer,
      ),
    );
  expect((await issuers({})).size).toBe(2);
  expect(await issuers({}, delegator)).toEqual(new Set([delegator.principal.id]));
  expect(await issuers({}, worker)).toEqual(new Set());
  expect(await issuers({ issuer: delegator.principal.id }, worker)).toEqual(new Set());
  expect(await refusal(platform.contracts.listContracts({ pageToken: "x" }))).toMatchObject({
    reason: "PAGE_TOKEN_INVALID",
  });
});

test("verifies a contract from the store and from a request", async () => {
  const contract = await platform.agree();
  const { contracts } = platform;
  const verify = (contract: TaskContract) =>
    contracts.verifyContract({ subject: { case: "contract", value: message(contract) } });
  expect(
    await contracts.verifyContract({ subject: { case: "contractId", value: contract.id } }),
  ).toMatchObject({
    valid: true,
    recorded: true,
    expired: false,
    contract: message(contract),
  });
  expect(await verify(contract)).toMatchObject({ valid: true, recorded: true });

  const changed = { ...contract, task: { ...contract.task, outputSchema: { $ref: "https://example.com/" } } };
  const { valid, recorded, findings } = await verify(changed);
  expect([valid, recorded]).toEqual([false, false]);
  expect(findings.map(({ step, passed }) => [step, passed])).toEqual([
    [ContractStep.SIGNATURE, false],
    [ContractStep.CONTENT, false],
  ]);
  expect(findings.map(({ details }) => details)).toEqual([
    "not signed by issuer",
    expect.stringContaining("contract.task.output_schema"),
  ]);

  const elsewhere = signedContract({ deadline: "2025-12-31T13:00:00Z" });
  expect(await verify(elsewhere)).toMatchObject({ valid: true, recorded: false, expired: true });
  const unknown = contracts.verifyContract({ subject: { case: "contractId", value: "ct_000000000000" } });
  expect(await refusal(unknown)).toMatchObject({ reason: "CONTRACT_NOT_FOUND" });
});

test("signs a contract in the platform's name for a caller without credentials", async () => {
  const draft = message({ ...contractBody(), signature: "" });
  const request = { requestId: "own", contract: { ...draft, id: "", issuer: "", createdAt: "" } };
  const { contract } = await platform.contracts.signContract(request);
  const { principal } = await platform.attestations.getVerifier({});
  expect(contract?.issuer).toBe(principal);
  const subject = { case: "contractId", value: contract?.id ?? "" } as const;
  expect((await platform.contracts.verifyContract({ subject })).valid).toBe(true);
  expect((await platform.contracts.signContract(request)).contract).toEqual(contract);
  const bad = { requestId: "bad", contract: { ...request.contract, task: undefined } };
  expect(await refusal(platform.contracts.signContract(bad))).toMatchObject({ reason: "INVALID_REQUEST" });
  const other = { ...bad, requestId: request.requestId };
  expect(await refusal(platform.contracts.signContract(other))).toMatchObject({
    reason: "REQUEST_ID_REUSED",
  });
  expect(await refusal(platform.contracts.signContract(request, asCaller(delegator)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
});
