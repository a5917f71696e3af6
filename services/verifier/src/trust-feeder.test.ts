import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { CheckStatus, Decision } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { newId } from "@depute/dct";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { delegator, worker } from "./testing/contracts.ts";
import { fakeRegistry } from "./testing/fake-registry.ts";
import { fakeTokens } from "./testing/fake-tokens.ts";
import { as, type Platform, startPlatform, value } from "./testing/platform.ts";

const tokens = fakeTokens();
const registry = fakeRegistry(
  {
    [tokens.root]: ["boss"],
    [worker.principal.id]: ["hand"],
    [delegator.principal.id]: ["one", "two"],
    "k-seller": ["agent:seller"],
    "k-buyer": ["agent:buyer"],
    "k-judge": ["agent:judge"],
  },
  { "k-judge": ["org:judge"] },
);
let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform([], tokens, registry);
});
afterAll(() => platform.stop());

async function judged(label: string | number, change: { delegatee?: string; caller?: typeof worker } = {}) {
  const { id: contractId } = await platform.agree();
  const delegationId = newId("del");
  tokens.record(
    tokens.mint({
      delegatee: change.delegatee ?? worker.principal.id,
      contractId,
      capabilities: [{ namespace: "docs", action: "read", resource: "**" }],
      maxBudgetMicrocents: 10,
      maxChainDepth: 1,
      delegationId,
    }),
  );
  const attest = async () => {
    const request = {
      requestId: newId("att"),
      contractId,
      delegationId,
      output: value({ label }),
      durationMs: 7n,
    };
    const { attestation } = await platform.attestations.attestOutput(
      request,
      change.caller && as(change.caller),
    );
    return attestation?.id ?? "";
  };
  return { attest, id: await attest() };
}

const told = () =>
  registry.evidence.map(({ evidence }) => {
    const { agentId, counterpartAgentId, kind } = evidence ?? {};
    return { agentId, counterpartAgentId, outcome: kind?.value };
  });

test("the registry is told what came of work, once for a delegation, and what nobody registered did is passed over", async () => {
  const good = await judged("good");
  await good.attest();
  await judged("good", { delegatee: delegator.principal.id });
  await judged("good", { caller: worker });
  const bad = await judged(7);
  await vi.waitFor(() => expect(told()).toHaveLength(2), 5000);
  const between = { agentId: "hand", counterpartAgentId: "boss" };
  expect(told()).toMatchObject([
    { ...between, outcome: { attestationId: good.id, success: true, quality: 1, durationMs: 7n } },
    { ...between, outcome: { attestationId: bad.id, success: false, quality: 0 } },
  ]);
});

test("the registry is told final verification results, unless the seller attested its own work", async () => {
  const before = told().length;
  const seller = { agentId: "agent:seller", organizationId: "org:one" };
  const buyer = { agentId: "agent:buyer", organizationId: "org:two" };
  const judge = { agentId: "agent:judge", organizationId: "org:judge" };
  const { SELLER_ATTESTED, BUYER_VERIFIED, THIRD_PARTY_VERIFIED } = VerificationMode;
  const verifiers = new Map<VerificationMode, typeof seller>([
    [SELLER_ATTESTED, seller],
    [BUYER_VERIFIED, buyer],
    [THIRD_PARTY_VERIFIED, judge],
  ]);
  let count = 0;
  const submit = async (mode: VerificationMode, decision: Decision, score: number) => {
    count += 1;
    await platform.results.submitVerificationResult({
      result: {
        protocolVersion: "agenta.delegation.v0",
        messageType: "verification_result",
        verificationId: `verification-${count}`,
        requestId: `request-${count}`,
        receiptId: `receipt-${count}`,
        verifierAgent: verifiers.get(mode),
        decision,
        score,
        checks: [{ checkId: "check-1", description: "it is there", status: CheckStatus.PASS }],
        verifiedAt: "2026-01-01T00:00:00Z",
      },
      terms: { mode, seller, buyer },
    });
  };
  await submit(BUYER_VERIFIED, Decision.INCONCLUSIVE, 0.5);
  await submit(SELLER_ATTESTED, Decision.PASS, 1);
  await submit(BUYER_VERIFIED, Decision.PASS, 0.9);
  await submit(BUYER_VERIFIED, Decision.FAIL, 0.2);
  await submit(THIRD_PARTY_VERIFIED, Decision.PASS, 0.8);
  await vi.waitFor(() => expect(told()).toHaveLength(before + 3), 5000);
  const between = { agentId: "agent:seller", counterpartAgentId: "agent:buyer" };
  expect(told().slice(before)).toMatchObject([
    {
      ...between,
      outcome: { attestationId: "verification-3", success: true, quality: 0.9, verifierAgentId: "" },
    },
    { ...between, outcome: { attestationId: "verification-4", success: false, quality: 0.2 } },
    { ...between, outcome: { attestationId: "verification-5", verifierAgentId: "agent:judge" } },
  ]);
});

test("what could not be told is told later, also by another process", async () => {
  registry.state.away = true;
  const late = await judged("good");
  const before = told().length;
  await platform.restart();
  expect(told()).toHaveLength(before);
  registry.state.away = false;
  await platform.restart();
  await vi.waitFor(() => expect(told().at(-1)?.outcome).toMatchObject({ attestationId: late.id }), 5000);
});
