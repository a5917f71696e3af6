import { readFileSync } from "node:fs";
import type { JsonObject } from "@bufbuild/protobuf";
import { DelegationAuthority, ParticipantRole } from "@depute/contracts/asp/v0/asp_common_pb";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { portableEngine } from "@depute/dct";
import { decodeValid } from "@depute/wire";
import { expect, test } from "vitest";
import { append } from "./append.ts";
import { evidenceOf, verifyEvidence } from "./evidence.ts";
import { idleSession, objectOf, type Party, type Session } from "./session.ts";
import { ALPHA, BETA, CAST, SESSION_ID, T0 } from "./testing/stage.ts";

function fixture(name: string): Envelope {
  const path = new URL(`../../wire/fixtures/asp/${name}.json`, import.meta.url);
  const decoded = decodeValid(EnvelopeSchema, JSON.parse(readFileSync(path, "utf8")) as JsonObject);
  if (!decoded.ok) throw new Error(decoded.error.message);
  return decoded.message;
}

const party = (agent: typeof ALPHA, role: ParticipantRole): Party => ({
  agentId: agent.agentId,
  orgId: agent.orgId,
  role,
  key: agent.key,
  trustScore: agent.trustScore,
  nextSequence: 2,
  side: agent.agentId,
  depth: 0,
  presence: "active",
  introduced: true,
  closed: false,
});

const first = fixture("message-1-propose");
const introduced: Session = {
  ...idleSession(SESSION_ID, T0 - 60_000),
  state: SessionState.INTRODUCED,
  expireMs: T0 + 3_600_000,
  parties: [party(ALPHA, ParticipantRole.INITIATOR), party(BETA, ParticipantRole.COUNTERPARTY)],
  lastHash: first.integrity?.previousHash ?? "",
  messageCount: 4,
  updateMs: T0,
};

test("the text's nine signed messages lead through the text's states", () => {
  const { CONVERSING, AGREEING, EXECUTING } = SessionState;
  const play: [string, SessionState][] = [
    ["message-1-propose", CONVERSING],
    ["message-2-clarify", CONVERSING],
    ["message-3-inform-fact", CONVERSING],
    ["message-4-delegate", CONVERSING],
    ["message-5-accept-delegation", CONVERSING],
    ["message-6-inform-result", CONVERSING],
    ["message-7-accept-proposal", CONVERSING],
    ["message-8-commit", AGREEING],
    ["message-9-accept-commitment", EXECUTING],
  ];
  let session = introduced;
  for (const [name, state] of play) {
    const envelope = fixture(name);
    const result = append(session, envelope, {
      nowMs: Date.parse(envelope.timestamp),
      engine: portableEngine,
      agent: (agentId) => CAST.find((one) => one.agentId === agentId),
      hasMessage: () => false,
    });
    expect(result.ok || result.refusal, name).toBe(true);
    session = result.session;
    expect(session.state, name).toBe(state);
  }
  expect(objectOf(session, "cmt_lic_001")).toMatchObject({
    status: "accepted",
    escrow: { amount: 5000, currency: "USD", releaseCondition: "seats-provisioned", state: "held" },
  });
  expect(objectOf(session, "del_001")).toMatchObject({
    status: "reported",
    authority: DelegationAuthority.ADVISORY,
    returnTo: BETA.agentId,
  });
  const report = {
    ordinal: 10,
    receiveMs: Date.parse("2026-03-07T15:01:50.000Z"),
    envelope: fixture("message-6-inform-result"),
  };
  const evidence = evidenceOf(session, "del_001", fixture("message-4-delegate"), report);
  if (evidence === undefined) throw new Error("no evidence");
  const { verifier, delegationId, verifiedAt, confirmations } = evidence;
  expect({ verifier, delegationId, verifiedAt, confirmations }).toEqual({
    verifier: "agent://verifyco.com/compliance/gamma-auditor",
    delegationId: "del_001",
    verifiedAt: "2026-03-07T15:01:50.000Z",
    confirmations: { soc2TypeII: true, iso27001: true },
  });
  const keyOf = (agentId: string) => CAST.find((one) => one.agentId === agentId)?.key;
  expect(verifyEvidence(portableEngine, evidence, keyOf)).toBe(true);
  for (const altered of [
    { verifier: BETA.agentId },
    { delegationId: "del_002" },
    { verifiedAt: "2026-03-07T15:01:51.000Z" },
    { confirmations: { soc2TypeII: true, iso27001: false } },
    { result: undefined },
    { signingPublicKey: BETA.key },
    { report: { ...report, envelope: fixture("message-7-accept-proposal") } },
  ]) {
    expect(verifyEvidence(portableEngine, { ...evidence, ...altered } as typeof evidence, keyOf)).toBe(false);
  }
});
