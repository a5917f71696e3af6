import { create } from "@bufbuild/protobuf";
import { ArtifactType } from "@depute/contracts/agenta/delegation/v0/agenta_common_pb";
import { OfferSchema, PricingModel, VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import {
  CompleteParamsSchema,
  DelegateParamsSchema,
  RevocationState,
  RevokeParamsSchema,
} from "@depute/contracts/delegateos/v0/delegateos_jsonrpc_pb";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { createRevocation, generateKeypair, type Keypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { refusal } from "@depute/service/testing";
import { decodeValid } from "@depute/wire";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, capability, type Json, result, startPlatform, type TestPlatform, value } from "./platform.ts";

let platform: TestPlatform;
const delegator = generateKeypair(engine);
const [worker, seller, cheap, vague] = [1, 2, 3, 4].map(() => generateKeypair(engine)) as [
  Keypair,
  Keypair,
  Keypair,
  Keypair,
];
const RIGHT = "llm:classify";
const CENT = 1_000_000;

beforeAll(async () => {
  platform = await startPlatform();
  await register("worker", worker);
  await register("seller", seller, [[RIGHT]]);
  await register("cheap", cheap, [[RIGHT, { type: "object" }, { avgMs: 120 }]]);
  await register("vague", vague, [[RIGHT], ["llm:embed"]]);
  await offer("seller", 3n, { seconds: 30n });
  await offer("cheap", 5n);
  await offer("cheap", 2n);
  await offer("cheap", 1n, { currency: "EUR" });
  await offer("cheap", 1n, { model: PricingModel.QUOTE_REQUIRED });
  await offer("cheap", 1n, { from: "2999-01-01T00:00:00Z" });
  await offer("vague", 1n);
});
afterAll(() => platform.stop());

async function register(
  id: string,
  { principal }: Keypair,
  capabilities: Parameters<typeof capability>[] = [],
) {
  const { agents } = platform.clients;
  await agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, version: "1.0.0", principal: principal.id, organization: "acme" },
  });
  if (capabilities.length === 0) return;
  const published = capabilities.map((parts) => capability(...parts));
  await agents.publishCapabilities({ requestId: crypto.randomUUID(), agentId: id, capabilities: published });
}

let offers = 0;
async function offer(
  agentId: string,
  amount: bigint,
  {
    currency = "USD",
    model = PricingModel.FIXED as PricingModel,
    seconds = 60n,
    from = "2019-01-01T00:00:00Z",
  } = {},
) {
  await platform.clients.offers.publishOffer({
    requestId: crypto.randomUUID(),
    offer: create(OfferSchema, {
      ...{
        protocolVersion: "agenta.delegation.v0",
        messageType: "offer",
        offerId: `offer-${100 + offers++}`,
      },
      ...{
        sellerAgent: { agentId, organizationId: "acme" },
        title: "Mood",
        description: "Tells the mood of a text.",
      },
      capabilities: { values: [RIGHT] },
      ...{ inputSchema: value({ type: "object" }), outputSchema: value({ type: "object" }) },
      pricing: { pricingModel: model, currency, amount },
      serviceLevels: { targetCompletionSeconds: seconds, maxCompletionSeconds: 600n },
      verificationPolicy: {
        mode: VerificationMode.SELLER_ATTESTED,
        requiredArtifacts: [ArtifactType.RESULT_PAYLOAD],
        passCriteria: ["It is right."],
      },
      validFrom: from,
    }),
  });
}

async function delegation(to: Keypair, { required = [RIGHT], maxBudgetMicrocents = 10 * CENT } = {}) {
  const contract = signObject(
    engine,
    "contract",
    {
      ...{ id: newId("ct"), version: "0.1", issuer: delegator.principal.id },
      createdAt: new Date(Date.now() - 1000).toISOString(),
      task: { title: "Count", description: "Count.", inputs: {}, outputSchema: { type: "object" } },
      verification: { method: "schema_match" },
      constraints: {
        ...{ maxBudgetMicrocents, maxChainDepth: 2, requiredCapabilities: required },
        deadline: new Date(Date.now() + 600_000).toISOString(),
      },
    },
    delegator,
  ) as Json;
  const minted = await platform.clients.tokens.mintToken({
    ...{ requestId: crypto.randomUUID(), delegatee: to.principal.id, contractId: contract.id },
    capabilities: required.map((right) => {
      const [namespace = "", action = ""] = right.split(":");
      return { namespace, action, resource: "**" };
    }),
    maxBudgetMicrocents: BigInt(maxBudgetMicrocents),
  });
  return {
    ...{ contract, dct: minted.token?.token ?? "", dctFormat: "delegateos-sjt-v1" },
    ...{ delegationId: minted.delegationId, parentDelegationId: "del_000000000000" },
    revocationId: minted.revocationId,
  };
}

type Delegation = Awaited<ReturnType<typeof delegation>>;
const paramsOf = ({ revocationId: _, ...params }: Delegation) => params;
const delegate = (params: Delegation) =>
  result(platform.post("/delegateos", call("delegateos/delegate", paramsOf(params))));

describe("an accepted delegation", () => {
  test.each([
    ["the agent's price, and its target time", () => delegation(seller), 30_000, 3 * CENT],
    [
      "the lowest of its open prices in USD, and its own estimate of time",
      () => delegation(cheap),
      120,
      2 * CENT,
    ],
    ["nothing for an agent without a price", () => delegation(worker), undefined, undefined],
    [
      "nothing if one of the requirements has no price",
      () => delegation(vague, { required: [RIGHT, "llm:embed"] }),
      undefined,
      undefined,
    ],
  ])("estimates %s", async (_, make, estimatedDurationMs, estimatedCostMicrocents) => {
    const params = await make();
    expect(await delegate(params)).toEqual({
      ...{ accepted: true, delegationId: params.delegationId },
      ...(estimatedDurationMs !== undefined && { estimatedDurationMs, estimatedCostMicrocents }),
    });
  });

  test("is turned down if the price exceeds the contract's budget", async () => {
    const params = await delegation(seller, { maxBudgetMicrocents: 3 * CENT - 1 });
    expect(await delegate(params)).toEqual({
      ...{ accepted: false, reason: "budget_exceeded" },
      details: "the agent's price is 3000000 microcents, but the contract allows 2999999",
    });
    expect((await delegate(await delegation(seller, { maxBudgetMicrocents: 3 * CENT }))).accepted).toBe(true);
  });
});

/** Converts a document of the wire to the message that an RPC takes. */
function message<Schema extends Parameters<typeof decodeValid>[0]>(schema: Schema, document: unknown) {
  const read = decodeValid(schema, document as never);
  if (!read.ok) throw new Error(read.error.message);
  return read.message as never;
}

describe("over gRPC the same exchange", () => {
  const rpc = () => platform.clients.delegateos;

  test("delegates like JSON-RPC", async () => {
    const params = await delegation(seller);
    const { result: first } = await rpc().delegate({
      parameters: message(DelegateParamsSchema, paramsOf(params)),
    });
    expect(first).toMatchObject({
      ...{ accepted: true, delegationId: params.delegationId },
      ...{ estimatedDurationMs: 30_000n, estimatedCostMicrocents: 3_000_000n },
    });
    // The other wire recognizes the same delegation.
    expect((await delegate(params)).accepted).toBe(true);
    const { tasks } = await platform.clients.tasks.listTasks({ pageSize: 1000 });
    expect(tasks.filter(({ externalId }) => externalId === params.delegationId)).toHaveLength(1);
  });

  test("declines with a reason, which is not an error", async () => {
    const params = { ...(await delegation(worker)), dct: "e30" };
    const answer = await rpc().delegate({ parameters: message(DelegateParamsSchema, paramsOf(params)) });
    expect(answer.result).toMatchObject({ accepted: false, reason: "malformed_token" });
  });

  test("refuses ids that are not the token's, with their place", async () => {
    const params = { ...(await delegation(worker)), delegationId: "del_123456789abc" };
    const delegateCall = rpc().delegate({ parameters: message(DelegateParamsSchema, paramsOf(params)) });
    expect(await refusal(delegateCall)).toMatchObject({ reason: "INVALID_REQUEST" });
    expect(await refusal(rpc().delegate({}))).toMatchObject({ reason: "INVALID_REQUEST" });
  });

  test("completes with the verified outcome, and refuses an unsigned attestation", async () => {
    const params = await delegation(worker);
    await delegate(params);
    const attestation = signObject(
      engine,
      "attestation",
      {
        ...{ id: newId("att"), version: "0.1", contractId: params.contract.id },
        ...{ delegationId: params.delegationId, principal: worker.principal.id, type: "completion" },
        createdAt: new Date().toISOString(),
        result: { success: true, output: { count: 3 }, costMicrocents: 5, durationMs: 10 },
        childAttestations: [],
      },
      worker,
    ) as Json;
    const { delegationId } = params;
    const forged = { delegationId, attestation: { ...attestation, createdAt: "2026-01-01T00:00:00.000Z" } };
    const refused = rpc().complete({ parameters: message(CompleteParamsSchema, forged) });
    expect(await refusal(refused)).toMatchObject({ reason: "SIGNATURE_INVALID" });
    const completed = await rpc().complete({
      parameters: message(CompleteParamsSchema, { delegationId, attestation }),
    });
    expect(completed.result).toMatchObject({ delegationId, status: DelegationStatus.COMPLETED });
  });

  test("revokes, stores an entry without a proven right as waiting, and refuses a stranger", async () => {
    const { dct, revocationId } = await delegation(worker);
    const revoke = async (by: Keypair, id: string, more: object = {}) => {
      const revocation = createRevocation(engine, id, "chain", by);
      return rpc().revoke({ parameters: message(RevokeParamsSchema, { revocation, ...more }) });
    };
    const stranger = generateKeypair(engine);
    expect(await refusal(revoke(stranger, revocationId, { dct }))).toMatchObject({
      reason: "NOT_AUTHORIZED_TO_REVOKE",
    });
    const { result: revoked } = await revoke(worker, revocationId, { dct });
    expect(revoked).toMatchObject({ revocationId, state: RevocationState.REVOKED });
    const { result: waits } = await revoke(stranger, "A".repeat(43));
    expect(waits).toMatchObject({ state: RevocationState.PENDING });
  });
});

describe("batches (JSON-RPC 2.0 section 6)", () => {
  test("of all three methods answer the calls, each with its own id, and process the notifications", async () => {
    const [one, two] = [await delegation(worker), await delegation(worker)];
    const revocation = createRevocation(engine, one.revocationId, "block", worker);
    const batch = [
      call("delegateos/delegate", paramsOf(two), "d"),
      { jsonrpc: "2.0", method: "delegateos/revoke", params: { revocation, dct: one.dct } },
      call("delegateos/complete", { delegationId: "del_1" }, "c"),
      call("delegateos/nothing", {}, "n"),
      { jsonrpc: "1.0", id: 7 },
    ];
    const answers = (await (await platform.post("/delegateos", batch)).json()) as Json[];
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    expect(answers).toHaveLength(4);
    expect(byId.get("d").result).toMatchObject({ accepted: true });
    expect(byId.get("c").error.code).toBe(-32602);
    expect(byId.get("n").error.code).toBe(-32601);
    expect(answers.some(({ error }) => error?.code === -32600)).toBe(true);
    expect(await delegate(one)).toMatchObject({ accepted: false, reason: "revoked" });
  });

  test("process delegateos/delegate without an id as well", async () => {
    const params = await delegation(worker);
    const notified = { jsonrpc: "2.0", method: "delegateos/delegate", params: paramsOf(params) };
    const answer = await platform.post("/delegateos", notified);
    expect([answer.status, await answer.text()]).toEqual([204, ""]);
    const name = { externalId: params.delegationId };
    expect((await platform.clients.tasks.getTask(name)).task?.agentId).toBe("worker");
  });
});
