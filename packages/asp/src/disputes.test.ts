import type { JsonObject } from "@bufbuild/protobuf";
import { formatTime } from "@depute/core";
import { beforeEach, expect, test } from "vitest";
import { disputesOf } from "./disputes.ts";
import { outcomesOf } from "./outcomes.ts";
import { objectOf } from "./session.ts";
import { ALPHA, BETA, Stage, T0 } from "./testing/stage.ts";
import { advance, nextDeadlineMs } from "./time.ts";
import { exportTranscript, verifyTranscript } from "./transcript.ts";

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});

const MINUTE = 60_000;
const escrow = { amount: 10.5, currency: "EUR", releaseCondition: "done" };
const terms = { seats: 100 };

/** Lets Alpha and Beta agree on a commitment by Alpha. */
function agree(more: JsonObject = {}): void {
  stage.converse();
  stage.say(ALPHA, "COMMIT", { commitmentId: "cmt", terms, ...more });
  stage.say(BETA, "ACCEPT", { referenceId: "cmt" });
}
const claim = () => stage.say(BETA, "INFORM", { informType: "result", references: ["cmt"] });
const close = () => {
  for (const actor of [ALPHA, BETA]) stage.say(actor, "CLOSE", {});
};
const at = (ms: number) => formatTime(T0 + ms);
const disputeRows = () => {
  const session = advance(stage.session, stage.nowMs);
  return disputesOf(stage.engine, session, (ordinal) => stage.entries[ordinal - 1]?.envelope).map(
    ({ reason, filedBy, filedAgainst, severity }) => [
      reason,
      filedBy === ALPHA.agentId ? "A" : "B",
      filedAgainst === ALPHA.agentId ? "A" : "B",
      severity,
    ],
  );
};
const duty = (status = stage.session) => objectOf(status, "cmt")?.obligations?.map((one) => one.status);

test("fulfilled obligations, and those not yet due, cause no dispute", () => {
  agree({ escrow });
  expect(disputeRows()).toEqual([]);
  claim();
  stage.say(ALPHA, "ACCEPT", { referenceId: "cmt" });
  close();
  expect(disputeRows()).toEqual([]);
});

test("a contested result, undelivered escrow and an unanswered delivery each have a reason", () => {
  agree({ escrow });
  claim();
  stage.say(ALPHA, "REJECT", { referenceId: "cmt", code: "policy_violation" });
  expect(disputeRows()).toEqual([["fulfillment-mismatch", "A", "B", 2]]);
  stage = new Stage();
  agree({ escrow });
  close();
  expect(disputeRows()).toEqual([["non-delivery", "A", "B", 3]]);
  stage = new Stage();
  agree({ escrow });
  claim();
  close();
  expect(disputeRows()).toEqual([["escrow-violation", "B", "A", 3]]);
});

test("a dispute has its evidence, and one id for every reader", () => {
  agree({ escrow, deadline: at(MINUTE) });
  stage.pass(MINUTE);
  const session = advance(stage.session, stage.nowMs);
  const [one] = disputesOf(stage.engine, session, (ordinal) => stage.entries[ordinal - 1]?.envelope);
  expect(one).toMatchObject({
    commitmentId: "cmt",
    reason: "timeout-breach",
    evidence: {
      agreedInMessage: 6,
      agreedTerms: terms,
      obligation: "overdue",
      dueAt: at(MINUTE),
      escrow: "held",
    },
  });
  expect(one?.disputeId).toMatch(/^dsp_[0-9a-f]{32}$/);
  expect(disputesOf(stage.engine, session)[0]?.disputeId).toBe(one?.disputeId);
});

test("a late obligation is overdue, and a breach unless the other side confirms it", () => {
  const obligations = {
    buyer: { party: ALPHA.agentId, action: "Pay.", deadline: at(3 * MINUTE) },
    vendor: { party: BETA.agentId, action: "Provision.", deadline: "2026-03-07T16:02:00+01:00" },
  };
  agree({ obligations, deadline: at(5 * MINUTE) });
  expect(nextDeadlineMs(stage.session)).toBe(T0 + 2 * MINUTE);
  stage.pass(2 * MINUTE);
  expect(duty(advance(stage.session, stage.nowMs))).toEqual(["outstanding", "overdue"]);
  claim();
  expect(duty()).toEqual(["outstanding", "claimed"]);
  stage.pass(MINUTE);
  expect(disputeRows()).toEqual([["timeout-breach", "B", "A", 2]]);
  stage.say(ALPHA, "ACCEPT", { referenceId: "cmt" });
  close();
  expect(duty()).toEqual(["overdue", "confirmed"]);
  expect(outcomesOf(stage.session).map(({ agentId, result }) => [agentId === ALPHA.agentId, result])).toEqual(
    [
      [true, "completed"],
      [false, "completed"],
      [true, "breached"],
      [false, "fulfilled"],
    ],
  );
  const transcript = exportTranscript(stage.session, stage.entries, stage.nowMs);
  const verdict = verifyTranscript(transcript, { engine: stage.engine });
  expect(verdict.ok && verdict.session).toEqual(stage.session);
});

test("without stated obligations the deadline of the accepting party applies", () => {
  agree({ deadline: at(MINUTE) });
  stage.pass(MINUTE);
  expect(disputeRows()).toEqual([["timeout-breach", "A", "B", 2]]);
  stage.say(ALPHA, "CLOSE", { outcome: "fulfilled" });
  expect(disputeRows()).toEqual([]);
});

test.each([
  ["that has passed", { deadline: at(0) }, "expired"],
  ["that is no day", { deadline: "2026-02-30T00:00:00Z" }, "malformed"],
  [
    "of an obligation that has passed",
    { obligations: { buyer: { party: ALPHA.agentId, action: "Pay.", deadline: at(-1) } } },
    "expired",
  ],
])("a deadline %s is refused", (_, more, code) => {
  stage.converse();
  expect(stage.refusal(ALPHA, "COMMIT", { commitmentId: "cmt", ...more })).toBe(code);
});
