import { RejectionCode } from "@depute/contracts/asp/v0/asp_common_pb";
import { SessionState } from "@depute/contracts/asp/v0/session_pb";
import { beforeEach, describe, expect, test } from "vitest";
import { seal } from "./integrity.ts";
import {
  CLOSE_GRACE_MS,
  DEFAULT_DURATION_MS,
  IDLE_TIMEOUT_MS,
  INVITATION_TIMEOUT_MS,
  MAX_COUNTER_ROUNDS,
  MAX_DELEGATION_DEPTH,
  MAX_OPEN_OBJECTS,
  MAX_SESSION_BYTES,
} from "./limits.ts";
import { isRetryable } from "./refusal.ts";
import { objectOf, partyOf } from "./session.ts";
import { rowFor, TABLE } from "./table.ts";
import { ALPHA, actor, BETA, DELTA, EPSILON, GAMMA, identity, proposal, Stage } from "./testing/stage.ts";
import { advance, nextDeadlineMs } from "./time.ts";

const { INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED, ESCALATED, FAILED } = SessionState;

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});

const status = (id: string) => objectOf(stage.session, id)?.status;
const delegation = (delegationId: string, target: typeof GAMMA, authority: "advisory" | "full") => ({
  delegationId,
  targetAgent: target.agentId,
  scope: "s",
  authority,
});
const commit = (more = {}) => ({ commitmentId: "cmt", ...more });
const escrow = { amount: 10.5, currency: "EUR", releaseCondition: "done" };
const escrowState = () => objectOf(stage.session, "cmt")?.escrow?.state;

describe("the table", () => {
  test("has one line for each of the thirteen performatives", () => {
    expect(new Set(TABLE.map(({ performative }) => performative)).size).toBe(13);
    expect(new Set(TABLE.map((line) => rowFor(line.performative, line.subject))).size).toBe(TABLE.length);
  });
  test("has all nine states, and no transition from the terminal ones", () => {
    const entered = TABLE.flatMap(({ moves }) => [...moves.values()]).filter(
      (next) => typeof next === "number",
    );
    expect(new Set(entered)).toEqual(
      new Set([INVITED, INTRODUCED, CONVERSING, AGREEING, EXECUTING, CLOSED, ESCALATED, FAILED]),
    );
    expect(TABLE.some(({ moves }) => moves.has(CLOSED) || moves.has(FAILED))).toBe(false);
  });
});

describe("invitations", () => {
  test("can fix the format of the session's messages to a supported one", () => {
    const propose = (messageFormat: string) => ({
      proposalId: "inv",
      type: "session-invitation",
      subject: "s",
      messageFormat,
    });
    const to = { recipient: BETA.agentId };
    expect(stage.refusal(ALPHA, "PROPOSE", propose("application/asp+msgpack"), to)).toBe(
      "unsupported_format",
    );
    stage.say(ALPHA, "PROPOSE", propose("application/asp+json"), to);
    const answer = stage.write(BETA, "ACCEPT", { referenceId: "inv" });
    const plain = { ...answer.content, mimeType: "application/json" } as typeof answer.content & object;
    const result = stage.offer(seal(stage.engine, { ...answer, content: plain }, BETA.seed));
    expect(!result.ok && result.refusal.code).toBe("unsupported_format");
    expect(stage.offer(answer).ok).toBe(true);
  });
  test("lapse at their timeout, and so do missing introductions", () => {
    stage.invite();
    expect(nextDeadlineMs(stage.session)).toBe(stage.nowMs + INVITATION_TIMEOUT_MS);
    expect(advance(stage.session, stage.nowMs + INVITATION_TIMEOUT_MS)).toMatchObject({ state: FAILED });
    stage.pass(INVITATION_TIMEOUT_MS - 1);
    stage.say(BETA, "ACCEPT", { referenceId: "prop_inv" });
    stage.pass(INVITATION_TIMEOUT_MS);
    expect(stage.refusal(BETA, "INFORM", identity(BETA))).toBe("session_ended");
    expect(stage.session).toMatchObject({ state: FAILED, end: "invitation_timeout" });
  });
  test("are rejected, withdrawn, or countered until one side accepts", () => {
    stage.invite();
    stage.say(BETA, "COUNTER", { referenceId: "prop_inv", proposalId: "inv_2" });
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "inv_2" })).toBe("wrong_party");
    expect(stage.refusal(ALPHA, "ACCEPT", { referenceId: "prop_inv" })).toBe("reference_closed");
    stage.say(ALPHA, "ACCEPT", { referenceId: "inv_2" });
    stage.say(BETA, "INFORM", identity(BETA));
    expect(stage.refusal(BETA, "INFORM", identity(BETA))).toBe("wrong_state");
    expect(stage.session.state).toBe(INVITED);
    stage.say(ALPHA, "INFORM", identity(ALPHA));
    expect(stage.session.state).toBe(INTRODUCED);

    stage = new Stage();
    stage.invite();
    stage.say(BETA, "REJECT", { referenceId: "prop_inv", code: "capacity_unavailable" });
    expect(stage.session).toMatchObject({ state: FAILED, end: "rejected" });
    expect(objectOf(stage.session, "prop_inv")?.rejection).toEqual({
      code: RejectionCode.CAPACITY_UNAVAILABLE,
      retryable: true,
    });
    stage = new Stage();
    stage.invite();
    stage.say(ALPHA, "WITHDRAW", { referenceId: "prop_inv" });
    expect(stage.session).toMatchObject({ state: FAILED, end: "withdrawn" });
  });
  test("an introduction has the sender's own card and key", () => {
    stage.invite();
    expect(stage.refusal(ALPHA, "INFORM", identity(ALPHA))).toBe("wrong_state");
    stage.say(BETA, "ACCEPT", { referenceId: "prop_inv" });
    expect(stage.refusal(ALPHA, "INFORM", identity(BETA))).toBe("unknown_agent");
    expect(stage.refusal(ALPHA, "INFORM", identity({ ...ALPHA, key: BETA.key }))).toBe("unknown_agent");
    expect(stage.refusal(ALPHA, "INFORM", { informType: "identity", data: 7 })).toBe("malformed");
  });
  test("a session lasts as long as its invitation states", () => {
    stage.invite(ALPHA, BETA, { maxDurationMs: 60_000 });
    expect(stage.session.expireMs).toBe(stage.nowMs + 60_000);
    stage = new Stage();
    stage.invite();
    expect(stage.session.expireMs).toBe(stage.nowMs + DEFAULT_DURATION_MS);
  });
});

describe("proposals", () => {
  beforeEach(() => stage.converse());

  test("are answered by the other side, once", () => {
    expect(stage.refusal(ALPHA, "ACCEPT", { referenceId: "prop_1" })).toBe("wrong_party");
    stage.say(BETA, "ACCEPT", { referenceId: "prop_1" });
    expect(stage.refusal(BETA, "REJECT", { referenceId: "prop_1" })).toBe("reference_closed");
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "prop_2" })).toBe("unknown_reference");
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "__proto__" })).toBe("unknown_reference");
    expect(stage.refusal(BETA, "PROPOSE", proposal("prop_1"))).toBe("id_taken");
  });
  test("lapse", () => {
    const validUntil = new Date(stage.nowMs + 1000).toISOString();
    stage.say(ALPHA, "PROPOSE", proposal("short", { validUntil }));
    stage.pass(1000);
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "short" })).toBe("expired");
    expect(stage.refusal(ALPHA, "PROPOSE", proposal("late", { validUntil }))).toBe("expired");
    stage.say(ALPHA, "PROPOSE", proposal("q"), { constraints: { maxResponseTimeMs: 5 } });
    stage.pass(5);
    expect(advance(stage.session, stage.nowMs).objects.q?.status).toBe("expired");
  });
  test("are countered in turn, up to a maximum of rounds", () => {
    let open = "prop_1";
    for (let round = 0; round < MAX_COUNTER_ROUNDS; round++) {
      const actor = round % 2 === 0 ? BETA : ALPHA;
      open = stage.say(actor, "COUNTER", { referenceId: open });
    }
    expect(stage.refusal(BETA, "COUNTER", { referenceId: open })).toBe("limit_exceeded");
    stage.say(BETA, "ACCEPT", { referenceId: open });
    expect(status("prop_1")).toBe("countered");
  });
  test("state the allowed answers and the answering party", () => {
    const constraints = { allowedPerformatives: ["ACCEPT"], requiredTrustScore: 86 };
    stage.say(ALPHA, "PROPOSE", proposal("strict"), { constraints });
    expect(stage.refusal(BETA, "REJECT", { referenceId: "strict" })).toBe("performative_not_allowed");
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "strict" })).toBe("insufficient_trust");
    stage.say(ALPHA, "WITHDRAW", { referenceId: "strict" });
    expect(status("strict")).toBe("withdrawn");
    const toAlpha = { recipient: ALPHA.agentId };
    expect(stage.refusal(ALPHA, "PROPOSE", proposal("own"), toAlpha)).toBe("unknown_party");
    expect(stage.refusal(ALPHA, "PROPOSE", proposal("far"), { recipient: DELTA.agentId })).toBe(
      "unknown_party",
    );
  });
  test("are limited in number while they are open", () => {
    for (let count = 1; count < MAX_OPEN_OBJECTS; count++) stage.say(ALPHA, "PROPOSE", proposal(`p${count}`));
    expect(stage.refusal(ALPHA, "PROPOSE", proposal("more"))).toBe("at_capacity");
  });
});

test("a session has a limit of total bytes", () => {
  stage.converse();
  const before = stage.session.byteCount;
  stage.say(ALPHA, "OBSERVE", {});
  const size = stage.session.byteCount - before;
  expect(size).toBeGreaterThan(400);
  stage.session = { ...stage.session, byteCount: MAX_SESSION_BYTES - size };
  stage.say(ALPHA, "OBSERVE", {});
  expect(stage.refusal(ALPHA, "OBSERVE", {})).toBe("limit_exceeded");
});

describe("commitments", () => {
  beforeEach(() => stage.converse());
  const claimIt = () => stage.say(BETA, "INFORM", { informType: "result", references: ["cmt"] });
  const agree = () => {
    stage.say(ALPHA, "COMMIT", commit({ escrow }));
    stage.say(BETA, "ACCEPT", { referenceId: "cmt" });
  };
  const closeBoth = () => {
    stage.say(ALPHA, "CLOSE", {});
    stage.say(BETA, "CLOSE", {});
  };

  test.each([
    [BETA, "REJECT", "rejected"],
    [BETA, "COUNTER", "countered"],
    [ALPHA, "WITHDRAW", "withdrawn"],
  ] as const)("%# leave AGREEING by %s", (actor, performative, closed) => {
    stage.say(ALPHA, "COMMIT", commit({ escrow }));
    expect(stage.refusal(ALPHA, "ACCEPT", { referenceId: "cmt" })).toBe("wrong_party");
    expect(stage.refusal(BETA, "COMMIT", commit({ commitmentId: "other" }))).toBe("wrong_state");
    stage.say(actor, performative, { referenceId: "cmt" });
    expect([stage.session.state, status("cmt"), escrowState()]).toEqual([CONVERSING, closed, undefined]);
  });
  test("cannot be withdrawn once accepted", () => {
    agree();
    expect(stage.refusal(ALPHA, "WITHDRAW", { referenceId: "cmt" })).toBe("wrong_state");
    expect(escrowState()).toBe("held");
  });
  test("lapse back to CONVERSING", () => {
    stage.say(ALPHA, "COMMIT", commit(), { constraints: { maxResponseTimeMs: 10 } });
    stage.pass(10);
    expect(advance(stage.session, stage.nowMs).state).toBe(CONVERSING);
  });
  test("release the escrow when the other side confirms the claimed obligation", () => {
    agree();
    expect(stage.refusal(ALPHA, "ACCEPT", { referenceId: "cmt" })).toBe("wrong_state");
    claimIt();
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "cmt" })).toBe("wrong_state");
    stage.say(ALPHA, "ACCEPT", { referenceId: "cmt" });
    expect([status("cmt"), escrowState()]).toEqual(["fulfilled", "released"]);
  });
  test("refund the escrow when no obligation was claimed, or a claim was contested", () => {
    agree();
    closeBoth();
    expect(escrowState()).toBe("refunded");
    stage = new Stage();
    stage.converse();
    agree();
    claimIt();
    stage.say(ALPHA, "REJECT", { referenceId: "cmt", code: "policy_violation" });
    closeBoth();
    expect(escrowState()).toBe("refunded");
  });
  test("forfeit the escrow after silence, and release it after a CLOSE with outcome fulfilled", () => {
    agree();
    claimIt();
    stage.pass(IDLE_TIMEOUT_MS);
    const ended = advance(stage.session, stage.nowMs);
    expect([ended.end, ended.objects.cmt?.escrow?.state]).toEqual(["idle", "forfeited"]);
    stage = new Stage();
    stage.converse();
    agree();
    claimIt();
    stage.say(ALPHA, "CLOSE", { outcome: "fulfilled" });
    expect(escrowState()).toBe("released");
  });
  test("bind only participants", () => {
    const obligations = { third: { party: DELTA.agentId, action: "Pay." } };
    expect(stage.refusal(ALPHA, "COMMIT", commit({ obligations }))).toBe("unknown_party");
  });
});

describe("delegations", () => {
  beforeEach(() => stage.converse());
  const bring = (by: typeof ALPHA, id: string, delegate: typeof GAMMA, authority: "advisory" | "full") => {
    stage.say(by, "DELEGATE", delegation(id, delegate, authority));
    stage.say(delegate, "ACCEPT", { referenceId: id });
  };

  test("an advisory delegate can inform, and cannot decide", () => {
    stage.say(BETA, "DELEGATE", delegation("del", GAMMA, "advisory"));
    expect(stage.refusal(GAMMA, "INFORM", { informType: "fact" })).toBe("not_a_participant");
    expect(stage.refusal(DELTA, "ACCEPT", { referenceId: "del" })).toBe("not_a_participant");
    stage.say(GAMMA, "ACCEPT", { referenceId: "del" });
    for (const [performative, body] of [
      ["PROPOSE", proposal("mine")],
      ["COUNTER", { referenceId: "prop_1" }],
      ["ACCEPT", { referenceId: "prop_1" }],
      ["REJECT", { referenceId: "prop_1" }],
      ["COMMIT", commit()],
      ["DELEGATE", delegation("del_2", DELTA, "advisory")],
    ] as const) {
      expect(stage.refusal(GAMMA, performative, body), performative).toBe("authority_exceeded");
    }
    stage.say(GAMMA, "QUERY", { question: "?" });
    stage.say(GAMMA, "CLARIFY", { referenceId: "prop_1", questions: [{ question: "?" }] });
    stage.say(GAMMA, "OBSERVE", {});
    stage.say(GAMMA, "INFORM", { informType: "result", references: ["del"] });
    expect(status("del")).toBe("reported");
    stage.say(GAMMA, "CLOSE", {});
    expect(stage.session.state).toBe(CONVERSING);
    expect(stage.refusal(GAMMA, "OBSERVE", {})).toBe("not_a_participant");
  });
  test("a delegate with full authority decides for its side, and cannot commit", () => {
    bring(BETA, "del", GAMMA, "full");
    stage.say(BETA, "PROPOSE", proposal("of_beta"));
    expect(stage.refusal(GAMMA, "ACCEPT", { referenceId: "of_beta" })).toBe("authority_exceeded");
    stage.say(GAMMA, "COUNTER", { referenceId: "prop_1", proposalId: "prop_2" });
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "prop_2" })).toBe("wrong_party");
    stage.say(ALPHA, "COUNTER", { referenceId: "prop_2", proposalId: "prop_3" });
    stage.say(GAMMA, "ACCEPT", { referenceId: "prop_3" });
    expect(stage.refusal(GAMMA, "COMMIT", commit())).toBe("authority_exceeded");
    stage.say(ALPHA, "COMMIT", commit());
    expect(stage.refusal(GAMMA, "ACCEPT", { referenceId: "cmt" })).toBe("authority_exceeded");
  });
  test("a delegate delegates further within the depth limit; a leaving delegate removes those below it", () => {
    const more = actor("agent://depth.example/x/four", "org_four", 50);
    stage.actors.set(more.agentId, more);
    const chain = [BETA, GAMMA, DELTA, EPSILON, more];
    for (let depth = 0; depth < MAX_DELEGATION_DEPTH; depth++) {
      bring(chain[depth] as typeof BETA, `del_${depth}`, chain[depth + 1] as typeof BETA, "full");
    }
    expect(stage.refusal(EPSILON, "DELEGATE", delegation("deep", more, "full"))).toBe("limit_exceeded");
    stage.say(BETA, "WITHDRAW", { referenceId: "del_0" });
    for (const { agentId } of [GAMMA, DELTA, EPSILON]) {
      expect(partyOf(stage.session, agentId)?.presence).toBe("left");
    }
    bring(ALPHA, "again", GAMMA, "advisory");
    expect(partyOf(stage.session, GAMMA.agentId)).toMatchObject({ side: ALPHA.agentId, presence: "active" });
  });
  test("an agent with the key of a participant is refused: one principal is one party", () => {
    const twin = {
      ...actor("agent://acme.com/procurement/twin", "org_acme", 68),
      key: ALPHA.key,
      seed: ALPHA.seed,
    };
    const ownStage = new Stage([ALPHA, BETA, GAMMA, twin]);
    const invitation = { proposalId: "inv", type: "session-invitation", subject: "s" };
    expect(ownStage.refusal(ALPHA, "PROPOSE", invitation, { recipient: twin.agentId })).toBe(
      "same_principal",
    );
    ownStage.converse();
    expect(ownStage.refusal(BETA, "DELEGATE", delegation("del", twin, "full"))).toBe("same_principal");
    expect(ownStage.refusal(ALPHA, "DELEGATE", delegation("del", twin, "advisory"))).toBe("same_principal");
  });
  test("refuse a participant, an unknown agent, and a delegate that declined", () => {
    expect(stage.refusal(BETA, "DELEGATE", delegation("del", ALPHA, "full"))).toBe("already_participant");
    const nobody = actor("agent://no.example/x/y", "org_no", 1);
    expect(stage.refusal(BETA, "DELEGATE", delegation("del", nobody, "full"))).toBe("unknown_agent");
    stage.say(BETA, "DELEGATE", delegation("del", GAMMA, "full"));
    stage.say(GAMMA, "REJECT", { referenceId: "del", code: "capacity_unavailable" });
    expect(stage.refusal(GAMMA, "OBSERVE", {})).toBe("not_a_participant");
  });
});

describe("pauses and ends", () => {
  beforeEach(() => stage.converse());

  test("ESCALATE pauses the session, and its author states the decision", () => {
    stage.say(ALPHA, "COMMIT", commit());
    stage.say(BETA, "ESCALATE", { referenceId: "cmt" });
    expect(stage.session).toMatchObject({ state: ESCALATED, returnsTo: AGREEING });
    expect(stage.refusal(BETA, "ACCEPT", { referenceId: "cmt" })).toBe("wrong_state");
    stage.say(ALPHA, "INFORM", { informType: "fact" });
    expect(stage.refusal(ALPHA, "INFORM", { informType: "resolution" })).toBe("wrong_party");
    stage.pass(IDLE_TIMEOUT_MS);
    stage.say(BETA, "INFORM", { informType: "resolution", data: { approved: true } });
    expect(stage.session.state).toBe(AGREEING);
    expect(stage.session).not.toHaveProperty("returnsTo");
  });
  test("after one CLOSE no new object is opened, and the session ends by the other CLOSE or its timeout", () => {
    stage.say(ALPHA, "CLOSE", {});
    expect(stage.refusal(ALPHA, "OBSERVE", {})).toBe("not_a_participant");
    expect(stage.refusal(BETA, "PROPOSE", proposal("new"))).toBe("closing");
    stage.say(BETA, "INFORM", { informType: "fact" });
    stage.pass(CLOSE_GRACE_MS);
    expect(advance(stage.session, stage.nowMs)).toMatchObject({ state: CLOSED, end: "close_grace" });
    expect(advance(stage.session, stage.nowMs).objects.prop_1?.status).toBe("lapsed");
  });
  test("a silent session fails", () => {
    stage.pass(IDLE_TIMEOUT_MS);
    expect(stage.refusal(ALPHA, "OBSERVE", {})).toBe("session_ended");
    expect(stage.session).toMatchObject({ state: FAILED, end: "idle" });
  });
  test("ratings are for other parties, one for each", () => {
    const rate = (...whom: (typeof ALPHA)[]) => ({
      ratings: whom.map(({ agentId }) => ({ agentId, stars: 5 })),
    });
    expect(stage.refusal(ALPHA, "CLOSE", rate(ALPHA))).toBe("unknown_party");
    expect(stage.refusal(ALPHA, "CLOSE", rate(BETA, BETA))).toBe("unknown_party");
    expect(stage.refusal(ALPHA, "CLOSE", rate(DELTA))).toBe("unknown_party");
    stage.say(ALPHA, "CLOSE", rate(BETA));
  });
});

test.each([
  [RejectionCode.BUDGET_EXCEEDED, false, true],
  [RejectionCode.UNAUTHORIZED, true, false],
  [RejectionCode.OTHER, true, true],
  [RejectionCode.OTHER, undefined, false],
])("rejection %s, stated as %s, can be retried: %s", (code, stated, expected) => {
  expect(isRetryable(code, stated)).toBe(expected);
});
