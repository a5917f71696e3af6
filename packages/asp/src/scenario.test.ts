import type { JsonObject } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { type Envelope, EnvelopeSchema, Performative } from "@depute/contracts/asp/v0/envelope_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { TranscriptSchema } from "@depute/contracts/asp/v0/transcript_pb";
import { nativeEngine } from "@depute/dct/native";
import { decodeValid, encode } from "@depute/wire";
import { describe, expect, test } from "vitest";
import { seal } from "./integrity.ts";
import { isTerminal, objectOf, objectsOf } from "./session.ts";
import { type Actor, ALPHA, BETA, GAMMA, identity, proposal, STRANGER, Stage } from "./testing/stage.ts";
import { exportTranscript, verifyTranscript } from "./transcript.ts";

type Line = readonly [Actor, keyof typeof Performative, JsonObject, SessionState, string?];
const { INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED } = SessionState;

const commitment: JsonObject = {
  commitmentId: "cmt_lic_001",
  type: "agreement",
  obligations: {
    buyer: { party: ALPHA.agentId, action: "Pay." },
    vendor: { party: BETA.agentId, action: "Provision." },
  },
  escrow: { amount: 5000, currency: "USD", releaseCondition: "seats-provisioned" },
};
const resultOf = (references: string[]): JsonObject => ({ informType: "result", references });
const stars = (whom: Actor, stars: number): JsonObject => ({
  outcome: "fulfilled",
  ratings: [{ agentId: whom.agentId, stars }],
});

/** The scenario of the ASP specification from invitation to close, with the state after each message. */
const LINES: readonly Line[] = [
  [ALPHA, "PROPOSE", { proposalId: "inv", type: "session-invitation", subject: "s" }, INVITED, BETA.agentId],
  [BETA, "ACCEPT", { referenceId: "inv" }, INVITED],
  [ALPHA, "INFORM", identity(ALPHA), INVITED],
  [BETA, "INFORM", identity(BETA), INTRODUCED],
  [ALPHA, "PROPOSE", proposal("prop_lic_001"), CONVERSING, BETA.agentId],
  [BETA, "CLARIFY", { referenceId: "prop_lic_001", questions: [{ question: "Certified?" }] }, CONVERSING],
  [ALPHA, "INFORM", { informType: "fact", references: ["prop_lic_001"] }, CONVERSING],
  [
    BETA,
    "DELEGATE",
    { delegationId: "del_001", targetAgent: GAMMA.agentId, scope: "Verify.", authority: "advisory" },
    CONVERSING,
  ],
  [GAMMA, "ACCEPT", { referenceId: "del_001" }, CONVERSING, BETA.agentId],
  [GAMMA, "INFORM", resultOf(["del_001"]), CONVERSING, BETA.agentId],
  [BETA, "ACCEPT", { referenceId: "prop_lic_001" }, CONVERSING],
  [ALPHA, "COMMIT", commitment, AGREEING],
  [BETA, "ACCEPT", { referenceId: "cmt_lic_001" }, EXECUTING],
  [BETA, "INFORM", resultOf(["cmt_lic_001"]), EXECUTING],
  [ALPHA, "ACCEPT", { referenceId: "cmt_lic_001" }, EXECUTING],
  [ALPHA, "CLOSE", stars(BETA, 5), EXECUTING],
  [BETA, "CLOSE", stars(ALPHA, 4), CLOSED],
];

function play(count = LINES.length): Stage {
  const stage = new Stage(undefined, nativeEngine);
  for (const [actor, performative, body, state, recipient] of LINES.slice(0, count)) {
    stage.pass(1000);
    stage.say(actor, performative, body, recipient === undefined ? {} : { recipient });
    expect(stage.session.state).toBe(state);
  }
  return stage;
}

const transcriptOf = (stage: Stage) => exportTranscript(stage.session, stage.entries, stage.nowMs);
const keyOf = (agentId: string) => new Stage().actors.get(agentId)?.key;
const verify = (transcript: ReturnType<typeof transcriptOf>) =>
  verifyTranscript(transcript, { engine: nativeEngine, keyOf });

test("the scenario ends with the escrow released, the question answered and both ratings", () => {
  const { session } = play();
  expect(objectOf(session, "cmt_lic_001")).toMatchObject({ escrow: { state: "released" } });
  expect(objectsOf(session, "question").map(({ status }) => status)).toEqual(["answered"]);
  expect(session.ratings.map(({ stars }) => stars)).toEqual([5, 4]);
  expect(session).toMatchObject({ end: "closed", messageCount: LINES.length });
});

test("a transcript verifies to the same states after a round trip through its document", () => {
  const document = JSON.parse(JSON.stringify(encode(TranscriptSchema, transcriptOf(play())))) as JsonObject;
  const read = decodeValid(TranscriptSchema, document);
  if (!read.ok) throw new Error(JSON.stringify(read.errors));
  const verdict = verify(read.message);
  expect(verdict.ok && verdict.states).toEqual(LINES.map(([, , , state]) => state));
});

describe("a transcript is refused", () => {
  const fullTranscript = transcriptOf(play());
  const changed = (change: (copy: typeof fullTranscript) => void) => {
    const copy = structuredClone(fullTranscript);
    change(copy);
    const verdict = verify(copy);
    return verdict.ok ? "verified" : [verdict.code, verdict.ordinal];
  };
  test.each(LINES.map((_, index) => index))("with message %i changed", (index) => {
    const sender = (copy: typeof fullTranscript) => copy.messages[index]?.envelope;
    expect(
      changed((copy) => Object.assign(sender(copy) ?? {}, { timestamp: "2026-03-07T15:00:00.001Z" })),
    ).toEqual(["wrong_hash", index + 1]);
    expect(changed((copy) => Object.assign(sender(copy)?.sender ?? {}, { trustScore: 99 }))).toEqual([
      "wrong_hash",
      index + 1,
    ]);
  });
  test.each(LINES.slice(0, -1).map((_, index) => index))("with message %i missing", (index) => {
    const verdict = changed((copy) => {
      copy.messages.splice(index, 1);
      copy.messages.forEach((entry, at) => {
        entry.ordinal = at + 1;
      });
    });
    // The test leaves out one message. Without the invitation, the session cannot begin. Without the delegation, the
    // next sender is not a participant. Without any other message, the hash chain breaks.
    const codes: Record<number, string> = { 0: "wrong_state", 7: "not_a_participant" };
    expect(verdict).toEqual([codes[index] ?? "head_moved", index + 1]);
  });
  test("with missing last messages, another state, another key or another participant", () => {
    expect(changed((copy) => copy.messages.pop())).toEqual(["wrong_outcome", 0]);
    expect(changed((copy) => Object.assign(copy, { state: SessionState.FAILED }))).toEqual([
      "wrong_outcome",
      0,
    ]);
    expect(
      changed((copy) => Object.assign(copy.participants[0] ?? {}, { signingPublicKey: STRANGER.key })),
    ).toEqual(["untrusted_key", 0]);
    expect(changed((copy) => copy.participants.pop())).toEqual(["unknown_agent", 8]);
  });
});

describe("each faulty message of the scenario is refused, and the session continues", () => {
  const wrongTurns = LINES.map((line, index) => ({ index, name: `${index + 1} ${line[1]}`, line }));

  test.each(wrongTurns)("$name with changes", ({ index, line: [actor, performative, body, , recipient] }) => {
    const stage = play(index);
    const sent = recipient === undefined ? {} : { recipient };
    const genuine = stage.write(actor, performative, body, sent);
    const altered = (change: Partial<Envelope>): Envelope =>
      create(EnvelopeSchema, { ...genuine, ...change });
    const signature = `ed25519:${"ab".repeat(64)}`;
    const code = (envelope: Envelope) => {
      const result = stage.offer(envelope);
      return result.ok ? "appended" : result.refusal.code;
    };
    expect(code(altered({ sequenceNumber: 77n }))).toBe("wrong_hash");
    expect(code(altered({ performative: Performative.OBSERVE }))).toBe(
      index === 0 ? "wrong_state" : "malformed",
    );
    expect(code({ ...genuine, integrity: Object.assign({}, genuine.integrity, { signature }) })).toBe(
      "bad_signature",
    );
    expect(code(seal(nativeEngine, genuine, STRANGER.seed))).toBe("bad_signature");
    expect(code(altered({ version: "asp/1.0" }))).toBe("unsupported_version");
    expect(code(genuine)).toBe("appended");
    // A party that has closed may send no more messages. After the session's end, no party may send any.
    const closed = isTerminal(stage.session.state) ? "session_ended" : "not_a_participant";
    expect(code(genuine)).toBe(performative === "CLOSE" ? closed : "duplicate_message");
  });

  test.each(wrongTurns)(
    "$name at a wrong position",
    ({ index, line: [actor, performative, body, , recipient] }) => {
      const stage = play(index);
      const sent = recipient === undefined ? {} : { recipient };
      const { nextSequence = 0 } =
        stage.session.parties.find(({ agentId }) => agentId === actor.agentId) ?? {};
      const gap = { ...sent, wrong: { sequenceNumber: nextSequence + 1 } };
      expect(stage.refusal(actor, performative, body, gap)).toBe("wrong_sequence");
      const fork = { ...sent, wrong: { previousHash: `sha256:${"1".repeat(64)}` } };
      expect(stage.refusal(actor, performative, body, fork)).toBe("head_moved");
      const late = { ...sent, wrong: { timestamp: "2026-03-07T16:00:00.000Z" } };
      expect(stage.refusal(actor, performative, body, late)).toBe("clock_skew");
      const elsewhere = { ...sent, wrong: { sessionId: "019526b1-0000-7000-8000-000000000003" } };
      expect(stage.refusal(actor, performative, body, elsewhere)).toBe("wrong_session");
      stage.say(actor, performative, body, sent);
    },
  );

  test.each(wrongTurns)(
    "$name by the wrong party",
    ({ index, line: [actor, performative, body, , recipient] }) => {
      const stage = play(index);
      const sent = recipient === undefined ? {} : { recipient };
      const stranger = stage.refusal(STRANGER, performative, body, sent);
      expect(stranger).toBe(index === 0 ? "unknown_agent" : "not_a_participant");
      const moved = { ...actor, orgId: "org_other" };
      expect(stage.refusal(moved, performative, body, sent)).toBe("organization_mismatch");
      // Before the introductions, a sender may not know its score as the session stores it. So the score is not
      // compared.
      const boastful = { ...actor, trustScore: 100 };
      const expected = index < 4 ? "appended" : "trust_mismatch";
      expect(stage.refusal(boastful, performative, body, sent)).toBe(expected);
    },
  );

  const others: readonly [number, Actor, string][] = [
    [1, ALPHA, "wrong_party"],
    [2, BETA, "unknown_agent"],
    [8, ALPHA, "wrong_party"],
    [8, BETA, "wrong_party"],
    [10, ALPHA, "wrong_party"],
    [10, GAMMA, "authority_exceeded"],
    [11, GAMMA, "authority_exceeded"],
    [12, ALPHA, "wrong_party"],
    [12, GAMMA, "authority_exceeded"],
    [14, BETA, "wrong_state"],
    [14, GAMMA, "authority_exceeded"],
  ];
  test.each(others)("message %i from another participant of the session: %#", (index, actor, code) => {
    const [, performative, body] = LINES[index] as Line;
    expect(play(index).refusal(actor, performative, body)).toBe(code);
  });

  test.each(wrongTurns.slice(1))("$name too early", ({ index, line: [actor, performative, body] }) => {
    for (let at = 1; at < index; at++) {
      const stage = play(at);
      const before = stage.session;
      const result = stage.refusal(actor, performative, body);
      // Some states allow the message, because it answers no message and opens no object that the state forbids.
      if (result === "appended") continue;
      expect(stage.session).toEqual(before);
    }
    expect(play(1).refusal(actor, performative, body)).toBe(
      index === 1 ? "appended" : expectedWhenInvited(index, actor, performative),
    );
  });

  function expectedWhenInvited(index: number, actor: Actor, performative: keyof typeof Performative): string {
    // Gamma has not joined yet. Index 3 is Beta's introduction, which Beta sends here before it has accepted.
    if (actor === GAMMA || index === 3) return "not_a_participant";
    return performative === "ACCEPT" || performative === "CLARIFY" ? "unknown_reference" : "wrong_state";
  }
});
