import { ConformanceLevel } from "@depute/contracts/asp/v0/asp_common_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { expect, test } from "vitest";
import { type Actor, ALPHA, BETA, GAMMA, proposal, Stage } from "./testing/stage.ts";
import { exportTranscript, verifyTranscript } from "./transcript.ts";

const at = (one: Actor, conformance: ConformanceLevel): Actor => ({ ...one, conformance });
const { MINIMAL, STANDARD, FULL } = ConformanceLevel;
const rated = (actor: Actor) => ({ ratings: [{ agentId: actor.agentId, stars: 5 }] });
const delegation = { delegationId: "del", targetAgent: GAMMA.agentId, scope: "s", authority: "advisory" };

test("a party of the minimal level can use INFORM, QUERY and CLOSE, and the session begins as usual", () => {
  const [alpha, beta] = [ALPHA, at(BETA, MINIMAL)];
  const stage = new Stage([alpha, beta]);
  stage.introduce(alpha, beta);
  for (const actor of [alpha, beta]) {
    expect(stage.refusal(actor, "PROPOSE", proposal("p"))).toBe("not_conformant");
    expect(stage.refusal(actor, "OBSERVE", {})).toBe("not_conformant");
    expect(stage.refusal(actor, "ESCALATE", {})).toBe("not_conformant");
  }
  stage.say(alpha, "QUERY", { queryId: "q", question: "?" });
  stage.say(beta, "INFORM", { informType: "fact", references: ["q"] });
  expect(stage.refusal(alpha, "WITHDRAW", { referenceId: "q" })).toBe("reference_closed");
  stage.say(beta, "CLOSE", {});
  stage.say(alpha, "CLOSE", {});
  expect(stage.session.state).toBe(SessionState.CLOSED);
  const transcript = exportTranscript(stage.session, stage.entries, stage.nowMs);
  expect(transcript.participants.map(({ conformanceLevel }) => conformanceLevel)).toEqual([
    undefined,
    MINIMAL,
  ]);
  expect(verifyTranscript(transcript, { engine: stage.engine }).ok).toBe(true);
  // The second participant's level allowed every message of the transcript. An absent level allows more, so the
  // transcript stays valid.
  const [, hidden] = transcript.participants;
  delete hidden?.conformanceLevel;
  expect(verifyTranscript(transcript, { engine: stage.engine })).toMatchObject({ ok: true });
});

test("the standard level has all performatives except ratings, which need the full level", () => {
  const [alpha, beta] = [at(ALPHA, STANDARD), at(BETA, FULL)];
  const stage = new Stage([alpha, beta]);
  stage.converse(alpha, beta);
  expect(stage.refusal(alpha, "CLOSE", rated(beta))).toBe("not_conformant");
  stage.say(alpha, "CLOSE", { ratings: [] });
  stage.say(beta, "CLOSE", rated(alpha));
  expect(stage.session.ratings).toHaveLength(1);
});

test("refuses a delegate whose level cannot accept", () => {
  const gamma = at(GAMMA, MINIMAL);
  const stage = new Stage([ALPHA, BETA, gamma]);
  stage.converse();
  expect(stage.refusal(BETA, "DELEGATE", delegation)).toBe("not_conformant");
  const other = new Stage([ALPHA, BETA, at(GAMMA, STANDARD)]);
  other.converse();
  other.say(BETA, "DELEGATE", delegation);
});
