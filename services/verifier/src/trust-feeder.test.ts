import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { VerificationMode } from "@depute/contracts/agenta/delegation/v0/offer_pb";
import { CheckStatus, Decision } from "@depute/contracts/agenta/delegation/v0/verification_result_pb";
import { newId } from "@depute/dct";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { delegator, worker } from "./testing/contracts.ts";
import { fakeRegistry } from "./testing/fake-registry.ts";
import { fakeTokens } from "./testing/fake-tokens.ts";
import { asCaller, type Platform, startPlatform, value } from "./testing/platform.ts";

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

async function attestLabel(
  label: string | number,
  change: { delegatee?: string; caller?: typeof worker } = {},
) {
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
      duration: durationFromMs(7),
    };
    const { attestation } = await platform.attestations.attestOutput(
      request,
      change.caller && asCaller(change.caller),
    );
    return attestation?.id ?? "";
  };
  return { attest, id: await attest() };
}

const reportedOutcomes = () =>
  registry.evidence.map(({ evidence }) => {
    const { agentId, counterpartAgentId, kind } = evidence ?? {};
    return { agentId, counterpartAgentId, outcome: kind?.value };
  });

test("reports outcomes to the registry once per delegation and skips unregistered agents", async () => {
  const good = await attestLabel("good");
  await good.attest();
  await attestLabel("good", { delegatee: delegator.principal.id });
  await attestLabel("good", { caller: worker });
  const bad = await attestLabel(7);
  await vi.waitFor(() => expect(reportedOutcomes()).toHaveLength(2), 5000);
  const between = { agentId: "hand", counterpartAgentId: "boss" };
  expect(reportedOutcomes()).toMatchObject([
    {
      ...between,
      outcome: { attestationId: good.id, success: true, quality: 1, duration: durationFromMs(7) },
    },
    { ...between, outcome: { attestationId: bad.id, success: false, quality: 0 } },
  ]);
});

test("reports final verification results, unless the seller attested its own work", async () => {
  const before = reportedOutcomes().length;
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
  await vi.waitFor(() => expect(reportedOutcomes()).toHaveLength(before + 3), 5000);
  const between = { agentId: "agent:seller", counterpartAgentId: "agent:buyer" };
  expect(reportedOutcomes().slice(before)).toMatchObject([
    {
      ...between,
      outcome: { attestationId: "verification-3", success: true, quality: 0.9, verifierAgentId: "" },
    },
    { ...between, outcome: { attestationId: "verification-4", success: false, quality: 0.2 } },
    { ...between, outcome: { attestationId: "verification-5", verifierAgentId: "agent:judge" } },
  ]);
});

test("retries a failed report, also in another process", async () => {
  registry.state.away = true;
  const late = await attestLabel("good");
  const before = reportedOutcomes().length;
  await platform.restart();
  expect(reportedOutcomes()).toHaveLength(before);
  registry.state.away = false;
  await platform.restart();
  await vi.waitFor(
    () => expect(reportedOutcomes().at(-1)?.outcome).toMatchObject({ attestationId: late.id }),
    5000,
  );
});
