import { describe, expect, test } from "vitest";
import {
  answerInquiry,
  decide,
  entitledReviewers,
  inquire,
  MAX_INQUIRIES,
  mayRead,
  nextChange,
  type Review,
  stateOf,
  validateReview,
  withdraw,
} from "./review.ts";

const review: Review = {
  id: "r",
  kind: "oversight",
  creator: "service",
  organization: "",
  subject: "task",
  title: "",
  author: "author",
  reviewers: ["first", "second"],
  escalationReviewers: ["boss"],
  escalationTime: 50,
  deadline: 100,
  createTime: 0,
};
const approve = (reviewer: string, reason = "") =>
  ({ verdict: "approved", reviewer, reason, caller: "caller" }) as const;

test("an undecided review times out at its deadline", () => {
  expect([0, 99, 100].map((now) => stateOf(review, now))).toEqual(["pending", "pending", "timed_out"]);
  const decided = decide(review, approve("first"), 99);
  expect(stateOf(decided, 1000)).toBe("approved");
  expect(() => decide(review, approve("first"), 100)).toThrow("timed_out");
});

test.each([
  ["before anything is recorded", review, undefined, 50],
  ["once the time before the escalation is", review, 49, 50],
  ["at the escalation", review, 50, 100],
  ["past the deadline", review, 100, undefined],
  ["when both times are one", { ...review, escalationTime: 100 }, 100, undefined],
  ["after a decision", { ...review, decision: "approved" as const }, 0, undefined],
])("the next time-based change of a review: %s", (_, reviewFields, now, next) => {
  expect(nextChange(reviewFields, now)).toBe(next);
});

test("escalation reviewers join at the escalation", () => {
  expect(entitledReviewers(review, 49)).toEqual(["first", "second"]);
  expect(() => decide(review, approve("boss"), 49)).toThrow("not a reviewer");
  expect(mayRead(review, { principal: "boss" }, 49)).toBe(false);
  expect(decide(review, approve("boss"), 50)).toMatchObject({
    decision: "approved",
    decidedBy: "boss",
    decideTime: 50,
  });
  expect(mayRead(review, { principal: "boss" }, 50)).toBe(true);
});

test.each<[by: string, reason: string]>([
  ["stranger", "not a reviewer"],
  ["service", "not a reviewer"],
  ["", "not a reviewer"],
  ["author", "author of the work"],
])("%j may not decide", (by, message) => {
  expect(() => decide(review, approve(by), 60)).toThrow(message);
});

test("a review is decided once, and a replay of the decision has no effect", () => {
  const decided = decide(review, approve("first", "fine"), 1);
  expect(decide(decided, approve("first", "fine"), 500)).toBe(decided);
  for (const other of [
    approve("second", "fine"),
    approve("first", "other"),
    { ...approve("first", "fine"), verdict: "rejected" } as const,
  ]) {
    expect(() => decide(decided, other, 2)).toThrow("closed: approved");
  }
  expect(() => withdraw(decided, "service", "", 2)).toThrow("closed: approved");
});

test("a verdict other than approved needs a reason", () => {
  for (const verdict of ["rejected", "changes_requested"] as const) {
    expect(() => decide(review, { verdict, reviewer: "first", reason: "  ", caller: "first" }, 1)).toThrow(
      "unless the verdict is approved",
    );
    expect(decide(review, { verdict, reviewer: "first", reason: "no", caller: "first" }, 1).decision).toBe(
      verdict,
    );
  }
});

test("an author cannot be a reviewer, and no reviewer joins after the deadline", () => {
  validateReview(review);
  expect(() => validateReview({ ...review, author: "second" })).toThrow("author of the work");
  expect(() => validateReview({ ...review, author: "boss" })).toThrow("author of the work");
  expect(() => validateReview({ ...review, escalationTime: 101 })).toThrow("after the deadline");
});

test("a reviewer may inquire while the review is pending, up to the limit", () => {
  const ask = (reviewer: string, inquiryCount = 0, now = 1) =>
    inquire(review, inquiryCount, { reviewer, text: "why?" }, now);
  expect(ask("first", 2)).toEqual({ number: 3, inquirer: "first", text: "why?", createTime: 1 });
  expect(() => ask("boss")).toThrow("not a reviewer");
  expect(() => ask("author")).toThrow("author of the work");
  expect(() => ask("first", 0, 100)).toThrow("timed_out");
  expect(() => ask("first", MAX_INQUIRIES)).toThrow("review_inquiries");
});

test("an inquiry is answered once", () => {
  const inquiry = inquire(review, 0, { reviewer: "first", text: "why?" }, 1);
  const inquiryAnswer = { answer: "because", answeredBy: "author" };
  const answered = answerInquiry(review, inquiry, inquiryAnswer, 2);
  expect(answered).toEqual({ ...inquiry, ...inquiryAnswer, answerTime: 2 });
  expect(answerInquiry(review, answered, inquiryAnswer, 500)).toBe(answered);
  expect(() => answerInquiry(review, answered, { ...inquiryAnswer, answer: "no" }, 3)).toThrow(
    "already has another answer",
  );
  expect(() => answerInquiry(review, inquiry, inquiryAnswer, 100)).toThrow("timed_out");
});

describe("a review that a role may decide", () => {
  const grant: Review = { ...review, kind: "grant", author: "proposer", reviewerRoles: ["operator"] };
  const operator = { principal: "root", roles: ["operator"] };
  const by = (reviewer: string, roles: readonly string[] | undefined, caller = reviewer) =>
    ({ verdict: "approved", reviewer, reason: "", roles, caller }) as const;

  test("is read and decided by its holders, and by its reviewers", () => {
    expect(mayRead(grant, operator, 1)).toBe(true);
    expect(decide(grant, by("root", ["operator"]), 1).decidedBy).toBe("root");
    expect(decide(grant, by("first", undefined), 1).decidedBy).toBe("first");
  });

  test.each<[string, ReturnType<typeof by>, string]>([
    ["a caller without roles", by("root", undefined), "not a reviewer"],
    ["a caller with another role", by("root", ["auditor"]), "not a reviewer"],
    ["its author, also with the role", by("proposer", ["operator"]), "author"],
    ["a caller in a reviewer's name", by("first", undefined, "local"), "only the reviewer itself"],
  ])("is not decided by %s", (_, decision, message) => {
    expect(() => decide(grant, decision, 1)).toThrow(message);
  });

  test("is absent for holders of the role without the review's role", () => {
    expect(mayRead(review, operator, 1)).toBe(false);
    expect(() => decide(review, by("root", ["operator"]), 1)).toThrow("not a reviewer");
  });
});
