import { expect, it } from "vitest";
import { type CallDecision, type DecisionFacts, decided, denialsOf } from "./call-decision.ts";
import { INTERNAL_ERROR, Refusal, unmapped } from "./rules/refusal.ts";

const about = { method: "tools/call", name: "read" };
/** Makes a decision that has verified a token with the principal `p` and the block `b`. */
const verified = async (facts: DecisionFacts) => {
  facts.principal = "p";
  facts.blocks = ["b"];
  return "admitted";
};

function reporting() {
  const decisions: CallDecision[] = [];
  return { decisions, report: (decision: CallDecision) => void decisions.push(decision) };
}

it("reports an allowed call with the token's holder, before the call is made", async () => {
  const { decisions, report } = reporting();
  expect(await decided(about, report, verified)).toBe("admitted");
  expect(decisions).toEqual([{ ...about, principal: "p", blocks: ["b"], isAllowed: true, reason: "" }]);
});

it("reports a denial with its type, also after the token was verified", async () => {
  const { decisions, report } = reporting();
  const denying = decided(about, report, async (facts) => {
    await verified(facts);
    throw unmapped("read");
  });
  await expect(denying).rejects.toThrow(Refusal);
  expect(decisions).toEqual([
    { ...about, principal: "p", blocks: ["b"], isAllowed: false, reason: "capability_not_granted" },
  ]);
});

it("reports nothing when the platform could not decide", async () => {
  const { decisions, report } = reporting();
  const failing = decided(about, report, async () => {
    throw new Refusal(INTERNAL_ERROR, "Internal error", {});
  });
  await expect(failing).rejects.toThrow("Internal error");
  expect(decisions).toEqual([]);
});

it("refuses a call whose decision cannot be recorded", async () => {
  const full = () => {
    throw new Error("full");
  };
  await expect(decided(about, full, verified)).rejects.toThrow("full");
});

it("reports the name that the decision resolved", async () => {
  const { decisions, report } = reporting();
  await decided({ method: "tasks/cancel" }, report, async (facts) => {
    facts.name = "read";
  });
  expect(decisions).toEqual([
    { method: "tasks/cancel", name: "read", principal: "", blocks: [], isAllowed: true, reason: "" },
  ]);
});

it("reports only the denials of requests that read", async () => {
  const { decisions, report } = reporting();
  await decided(about, denialsOf(report), verified);
  const denying = decided(about, denialsOf(report), async () => {
    throw unmapped("read");
  });
  await expect(denying).rejects.toThrow(Refusal);
  expect(decisions.map(({ isAllowed }) => isAllowed)).toEqual([false]);
});
