import { DecompositionMode } from "@depute/contracts/depute/verifier/v1/contract_service_pb";
import { newId } from "@depute/dct";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ContractParts, delegator, signedContract, worker } from "../testing/contracts.ts";
import { fakeTokens } from "../testing/fake-tokens.ts";
import { asCaller, message, type Platform, refusal, startPlatform } from "../testing/platform.ts";

const tokens = fakeTokens();
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform([], tokens);
});
afterAll(() => platform.stop());

const part = (change: ContractParts = {}, issuer = delegator) =>
  signedContract({ maxBudgetMicrocents: 100, maxChainDepth: 1, ...change }, issuer);

const plan = (
  parentId: string,
  contracts: ReturnType<typeof part>[],
  token?: { token: string; format: string },
) => ({
  parentId,
  mode: DecompositionMode.SEQUENTIAL,
  parts: contracts.map((contract) => ({ contract: message(contract), dependsOn: [] })),
  ...(token === undefined ? {} : { token }),
});

test("splits a contract into parts with a lineage, and a replay of the plan has no effect", async () => {
  const parent = await platform.agree();
  const parts = [part(), part(), part()];
  const answer = await platform.contracts.decomposeContract(plan(parent.id, parts));
  expect(answer.planId).toMatch(/^plan_[0-9a-f]{12}$/);
  expect(await platform.contracts.decomposeContract(plan(parent.id, parts))).toEqual(answer);
  const first = await platform.contracts.listSubContracts({ parentId: parent.id, pageSize: 2 });
  const restPage = await platform.contracts.listSubContracts({
    parentId: parent.id,
    pageSize: 2,
    pageToken: first.nextPageToken,
  });
  const listed = [...first.subContracts, ...restPage.subContracts];
  expect(listed.map(({ contractId, dependsOn }) => [contractId, dependsOn])).toEqual([
    [parts[0]?.id, []],
    [parts[1]?.id, [parts[0]?.id]],
    [parts[2]?.id, [parts[1]?.id]],
  ]);
  expect(restPage.nextPageToken).toBe("");
  const below = signedContract({ maxBudgetMicrocents: 1, maxChainDepth: 0 });
  await platform.contracts.decomposeContract(plan(parts[0]?.id ?? "", [below]));
  expect((await platform.contracts.getContractLineage({ contractId: below.id })).ancestorIds).toEqual([
    parts[0]?.id,
    parent.id,
  ]);
  expect((await platform.contracts.getContractLineage({ contractId: parent.id })).ancestorIds).toEqual([]);
});

test("all plans together stay within the contract's budget, and a refused plan stores nothing", async () => {
  const parent = await platform.agree({ maxBudgetMicrocents: 250 });
  const plans = Array.from({ length: 4 }, () => [part(), part({ maxBudgetMicrocents: 0 })]);
  const answers = await Promise.allSettled(
    plans.map((contracts) => platform.contracts.decomposeContract(plan(parent.id, contracts))),
  );
  expect(answers.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  const failed = plans.filter((_, i) => answers[i]?.status === "rejected").flat();
  for (const { id } of failed) {
    expect(await refusal(platform.contracts.getContract({ contractId: id }))).toMatchObject({
      reason: "CONTRACT_NOT_FOUND",
    });
  }
  expect(await refusal(platform.contracts.decomposeContract(plan(parent.id, [part()])))).toMatchObject({
    reason: "BUDGET_EXCEEDED",
    metadata: { needed: "100", allowed: "50", unit: "microcents" },
  });
});

test("only a new contract becomes a part", async () => {
  const parent = await platform.agree();
  const storedContract = await platform.agree({ maxBudgetMicrocents: 1, maxChainDepth: 1 });
  expect(
    await refusal(platform.contracts.decomposeContract(plan(parent.id, [part(), storedContract]))),
  ).toMatchObject({
    reason: "CONTRACT_EXISTS",
    metadata: { contract: storedContract.id },
  });
});

test("only a delegatee with a token for the contract splits it for its issuer", async () => {
  const parent = await platform.agree();
  const other = await platform.agree();
  const contracts = [part({}, worker)];
  const mint = (contractId: string, delegatee: string) =>
    tokens.mint({
      delegatee,
      contractId,
      capabilities: [{ namespace: "docs", action: "read", resource: "**" }],
      maxBudgetMicrocents: 100,
      maxChainDepth: 2,
      delegationId: newId("del"),
    });
  const split = (token?: ReturnType<typeof mint>, caller = worker) =>
    platform.contracts.decomposeContract(plan(parent.id, contracts, token), asCaller(caller));
  const ownToken = mint(parent.id, worker.principal.id);
  expect(await refusal(split())).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  expect(await refusal(split(mint(other.id, worker.principal.id)))).toMatchObject({ reason: "TOKEN_DENIED" });
  expect(await refusal(split(mint(parent.id, delegator.principal.id)))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  expect(await refusal(split(ownToken, delegator))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
  expect((await split(ownToken)).contractIds).toEqual(contracts.map(({ id }) => id));
});

test("a fault in a part has the part in its field", async () => {
  const parent = await platform.agree();
  const bad = part({ verification: { method: "deterministic_check", checkName: "none", checkParams: {} } });
  expect(await refusal(platform.contracts.decomposeContract(plan(parent.id, [part(), bad])))).toMatchObject({
    reason: "UNKNOWN_CHECK",
    fields: ["parts[1].contract.verification.check_name"],
  });
  const schema = part({ outputSchema: { type: "nothing" } });
  expect(await refusal(platform.contracts.decomposeContract(plan(parent.id, [schema])))).toMatchObject({
    reason: "SCHEMA_INVALID",
    fields: ["parts[0].contract.task.output_schema"],
  });
});
