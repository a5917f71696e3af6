import { ProposalState } from "@depute/contracts/depute/registry/v1/proposal_service_pb";
import { ReviewState } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { DeputeError, reasonName } from "@depute/core";
import { describe, expect, test } from "vitest";
import {
  authorOf,
  checkRoom,
  checkWidenings,
  checkWithdrawal,
  MAX_PENDING,
  MAX_PENDING_OF_ALL,
  MAX_PER_DAY,
  MAX_WIDENINGS,
  outcomeOf,
  type ProposalKind,
  reviewersOf,
} from "./proposal.ts";

const GRANTORS = { organization: ["t", "u"], authority: ["a"], manifest: ["local"] };

function refusalOf(run: () => unknown): { reason: string; limit?: string | undefined } | undefined {
  try {
    run();
    return undefined;
  } catch (thrown) {
    if (!(thrown instanceof DeputeError)) throw thrown;
    return { reason: reasonName(thrown.reason), limit: thrown.metadata.limit };
  }
}

test.each<[ProposalKind, string, string[]]>([
  ["organization", "p", ["t", "u"]],
  ["organization", "t", ["u"]],
  ["authority", "p", ["a"]],
  ["authority", "a", []],
  // On an open loopback every program is `local`. So `local` may review its own proposal.
  ["manifest", "local", ["local"]],
])("a proposal of the kind %s by %s is decided by %j", (kind, proposer, reviewers) => {
  expect(reviewersOf(kind, GRANTORS, proposer)).toEqual(reviewers);
});

test("a proposal has at most 64 named reviewers, each once", () => {
  const many = Array.from({ length: 100 }, (_, n) => `r${n % 70}`);
  expect(reviewersOf("authority", { ...GRANTORS, authority: many }, "p")).toHaveLength(64);
});

test("the author of a review is the proposer, unless it is every program of the machine", () => {
  expect([authorOf("p"), authorOf("local")]).toEqual(["p", ""]);
});

test.each([
  [{ pending: MAX_PENDING - 1, today: MAX_PER_DAY - 1, pendingOfAll: MAX_PENDING_OF_ALL - 1 }, undefined],
  [{ pending: MAX_PENDING, today: 16, pendingOfAll: 16 }, "proposals"],
  [{ pending: 0, today: MAX_PER_DAY, pendingOfAll: 0 }, "proposals_per_day"],
  [{ pending: 0, today: 0, pendingOfAll: MAX_PENDING_OF_ALL }, "pending_proposals"],
])("a proposal beside %j reaches the limit %s", (counts, limit) => {
  expect(refusalOf(() => checkRoom(counts))?.limit).toBe(limit);
});

test("a manifest adds at most 256 permissions", () => {
  expect(refusalOf(() => checkWidenings(MAX_WIDENINGS))).toBeUndefined();
  expect(refusalOf(() => checkWidenings(MAX_WIDENINGS + 1))?.limit).toBe("proposal_widenings");
});

test.each([
  [ReviewState.PENDING, undefined],
  [ReviewState.APPROVED, ProposalState.GRANTED],
  [ReviewState.CHANGES_REQUESTED, ProposalState.REJECTED],
  [ReviewState.REJECTED, ProposalState.REJECTED],
  [ReviewState.WITHDRAWN, ProposalState.WITHDRAWN],
  [ReviewState.TIMED_OUT, ProposalState.EXPIRED],
])("a review in the state %i moves its proposal to %s", (review, state) => {
  expect(outcomeOf(review)).toBe(state);
});

describe("a withdrawal", () => {
  test.each([
    [ProposalState.PENDING, true, true],
    [ProposalState.WITHDRAWN, true, false],
    [ProposalState.GRANTED, true, "PROPOSAL_CLOSED"],
    [ProposalState.REJECTED, true, "PROPOSAL_CLOSED"],
    [ProposalState.EXPIRED, true, "PROPOSAL_CLOSED"],
    [ProposalState.FAILED, true, "PROPOSAL_CLOSED"],
    [ProposalState.PENDING, false, "CALLER_NOT_ALLOWED"],
  ])("in the state %i, by the proposer: %s, is %s", (state, mayAct, outcome) => {
    const check = () => checkWithdrawal({ id: "x", proposer: "p", state }, mayAct);
    if (typeof outcome === "string") expect(refusalOf(check)?.reason).toBe(outcome);
    else expect(check()).toBe(outcome);
  });
});
