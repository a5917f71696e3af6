import { beforeEach, expect, test } from "vitest";
import { INVITATION_TIMEOUT_MS } from "./limits.ts";
import { outcomesOf } from "./outcomes.ts";
import { ALPHA, BETA, GAMMA, Stage } from "./testing/stage.ts";
import { advance } from "./time.ts";

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});

const NAMES = new Map([ALPHA, BETA, GAMMA].map(({ agentId }, index) => [agentId, "ABG"[index]]));
const outcomeLines = (session = stage.session) =>
  outcomesOf(session).map(
    ({ agentId, counterpartId, result }) => `${NAMES.get(agentId)} by ${NAMES.get(counterpartId)}: ${result}`,
  );
const staked = (session = stage.session) => outcomesOf(session).map((outcome) => outcome.staked);

const escrow = { amount: 1, currency: "USD", releaseCondition: "c" };
function execute(obligations = {}, terms: object = { escrow }): void {
  stage.converse();
  stage.say(ALPHA, "COMMIT", { commitmentId: "cmt", obligations, ...terms });
  stage.say(BETA, "ACCEPT", { referenceId: "cmt" });
  stage.say(BETA, "INFORM", { informType: "result", references: ["cmt"] });
}
function close(outcome?: string): void {
  for (const actor of [ALPHA, BETA]) stage.say(actor, "CLOSE", outcome === undefined ? {} : { outcome });
}

test("an open session has no outcomes", () => {
  execute();
  expect(outcomeLines()).toEqual([]);
});

test("a fulfilled commitment counts for both sides, and the payment for the payer", () => {
  execute({
    buyer: { party: ALPHA.agentId, action: "Pay." },
    vendor: { party: BETA.agentId, action: "Provision." },
  });
  close("fulfilled");
  expect(outcomeLines()).toEqual([
    "A by B: completed",
    "B by A: completed",
    "A by B: fulfilled",
    "A by B: paid",
    "B by A: fulfilled",
  ]);
});

test("a contested commitment counts against the claiming side", () => {
  execute();
  stage.say(ALPHA, "REJECT", { referenceId: "cmt" });
  close();
  expect(outcomeLines()).toEqual(["A by B: completed", "B by A: completed", "B by A: breached"]);
});

test.each<[string, object, string, boolean]>([
  ["escrow that was released", { escrow }, "fulfilled", true],
  ["no escrow", {}, "fulfilled", false],
  ["escrow of nothing", { escrow: { ...escrow, amount: 0 } }, "fulfilled", false],
])("with %s: %s, %s, at stake: %j", (_, terms, outcome, expected) => {
  execute({ vendor: { party: BETA.agentId, action: "Provision." } }, terms);
  close(outcome);
  expect(new Set(staked())).toEqual(new Set([expected]));
});

test("an empty session has nothing at stake", () => {
  stage.converse();
  close();
  expect(staked()).toEqual([false, false]);
});

test("refunded escrow was not at stake", () => {
  execute();
  stage.say(ALPHA, "REJECT", { referenceId: "cmt" });
  close();
  expect(new Set(staked())).toEqual(new Set([false]));
});

test("a claimed obligation counts as fulfilled after silence, with its escrow at stake", () => {
  execute();
  const silent = advance(stage.session, Number.MAX_SAFE_INTEGER);
  expect(outcomeLines(silent)).toEqual(["B by A: fulfilled"]);
  expect(staked(silent)).toEqual([true]);
});

test("a delegate that reported has an outcome with its delegator", () => {
  stage.converse();
  stage.say(BETA, "DELEGATE", {
    delegationId: "del",
    targetAgent: GAMMA.agentId,
    scope: "s",
    authority: "advisory",
  });
  stage.say(GAMMA, "ACCEPT", { referenceId: "del" });
  stage.say(GAMMA, "INFORM", { informType: "result", references: ["del"] });
  close();
  expect(outcomeLines().slice(2)).toEqual(["G by B: completed", "B by G: completed"]);
});

test("an invitation without an answer times out, and a rejected one does not", () => {
  stage.invite();
  expect(outcomeLines(advance(stage.session, stage.nowMs + INVITATION_TIMEOUT_MS))).toEqual([
    "B by A: timed_out",
  ]);
  stage.say(BETA, "REJECT", { referenceId: "prop_inv" });
  expect(outcomeLines()).toEqual([]);
});
