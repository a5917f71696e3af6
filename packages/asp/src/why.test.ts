import type { JsonObject } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CLOSE_GRACE_MS, INVITATION_TIMEOUT_MS } from "./limits.ts";
import { type Actor, ALPHA, BETA, identity, proposal, STRANGER, Stage } from "./testing/stage.ts";

/** Returns the detail of a refusal, which must contain the remedy. */
function detail(
  stage: Stage,
  actor: Actor,
  ...[performative, body, sent]: [Parameters<Stage["write"]>[1], JsonObject, Parameters<Stage["write"]>[3]?]
): string {
  const result = stage.offer(stage.write(actor, performative, body, sent));
  return result.ok ? "appended" : result.refusal.detail;
}

const invited = () => {
  const stage = new Stage();
  stage.invite();
  return stage;
};

test("before its acceptance an invitation awaits an answer", () => {
  const detailText = detail(invited(), ALPHA, "PROPOSE", proposal("p"));
  expect(detailText).toContain(
    `PROPOSE does not fit the state INVITED: the invitation awaits ACCEPT or REJECT from ${BETA.agentId}`,
  );
});

test("before a PROPOSE both parties need an introduction, and the refusal names the missing one", () => {
  const stage = invited();
  stage.say(BETA, "ACCEPT", { referenceId: "prop_inv" });
  const both = detail(stage, ALPHA, "PROPOSE", proposal("p"));
  expect(both).toContain('INFORM with informType "identity"');
  expect(both).toContain(`it is missing from ${ALPHA.agentId} and ${BETA.agentId}`);
  stage.say(ALPHA, "INFORM", identity(ALPHA));
  const one = detail(stage, ALPHA, "PROPOSE", proposal("p"));
  expect(one).toContain(`; it is missing from ${BETA.agentId}`);
  expect(one).not.toContain(ALPHA.agentId);
});

test("in every other state the refusal names the allowed performatives", () => {
  const stage = new Stage();
  stage.converse();
  expect(detail(stage, ALPHA, "PROPOSE", { ...proposal("again"), type: "session-invitation" })).toMatch(
    /PROPOSE does not fit the state CONVERSING: it allows .*COUNTER/,
  );
});

test("the refusal names the missing or wrong member of a card", () => {
  const stage = invited();
  stage.say(BETA, "ACCEPT", { referenceId: "prop_inv" });
  const show = (data: JsonObject) => detail(stage, ALPHA, "INFORM", { informType: "identity", data });
  const { data } = identity(ALPHA) as { data: JsonObject };
  const { name: _name, ...nameless } = data;
  expect(show(nameless)).toContain("content.body.data must be the sender's agent card: /name");
  expect(show({ ...data, capabilities: "walk" })).toContain("/capabilities");
  expect(show({ ...data, agentId: BETA.agentId })).toContain("agentId of the card");
  expect(show({ ...data, signingPublicKey: { kty: "OKP", crv: "Ed25519", x: BETA.key } })).toContain(
    "signingPublicKey of the card is not the key",
  );
});

test("after the end the refusal states how the session ended and what to do", () => {
  const rejected = invited();
  rejected.say(BETA, "REJECT", { referenceId: "prop_inv", code: "policy_violation" });
  expect(detail(rejected, ALPHA, "OBSERVE", {})).toMatch(
    /^the session has ended as FAILED at \S+Z: the invitation was rejected; open another session$/,
  );
  const late = invited();
  late.pass(INVITATION_TIMEOUT_MS);
  expect(detail(late, BETA, "ACCEPT", { referenceId: "prop_inv" })).toContain("was not answered");
  const closed = new Stage();
  closed.converse();
  for (const one of [ALPHA, BETA]) closed.say(one, "CLOSE", {});
  // A sender that has closed its side gets the text about the session's end, because this text explains more.
  expect(detail(closed, ALPHA, "OBSERVE", {})).toContain("ended as CLOSED");
  const halfClosed = new Stage();
  halfClosed.converse();
  halfClosed.say(ALPHA, "CLOSE", {});
  expect(detail(halfClosed, ALPHA, "OBSERVE", {})).toContain("has sent CLOSE");
  halfClosed.pass(CLOSE_GRACE_MS);
  expect(detail(halfClosed, BETA, "OBSERVE", {})).toContain("one party sent CLOSE");
});

test("the refusal names the correct score", () => {
  const stage = new Stage();
  stage.introduce();
  const lying = { ...ALPHA, trustScore: 99 };
  expect(detail(stage, lying, "OBSERVE", {})).toContain(`sender.trustScore must be ${ALPHA.trustScore}`);
});

test("the refusal states how to register the agent", () => {
  const detailText = detail(new Stage(), ALPHA, "PROPOSE", INVITATION, { recipient: STRANGER.agentId });
  expect(detailText).toContain(STRANGER.agentId);
  expect(detailText).toContain("signingPublicKey");
});

const INVITATION = { proposalId: "inv", type: "session-invitation", subject: "s" };
