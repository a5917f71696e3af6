import { expect, test } from "vitest";
import {
  answerInquiry,
  decide,
  entitled,
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
  subject: "task",
  title: "",
  author: "author",
  reviewers: ["first", "second"],
  escalationReviewers: ["boss"],
  escalationTime: 50,
  deadline: 100,
  createTime: 0,
};
const approve = (reviewer: string, reason = "") => ({ verdict: "approved", reviewer, reason }) as const;

test("a review times out at its deadline, unless it was decided", () => {
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
])("time changes a review next: %s", (_, given, now, next) => {
  expect(nextChange(given, now)).toBe(next);
});

test("others join at the escalation", () => {
  expect(entitled(review, 49)).toEqual(["first", "second"]);
  expect(() => decide(review, approve("boss"), 49)).toThrow("not this reviewer's");
  expect(mayRead(review, "boss", 49)).toBe(false);
  expect(decide(review, approve("boss"), 50)).toMatchObject({
    decision: "approved",
    decidedBy: "boss",
    decideTime: 50,
  });
  expect(mayRead(review, "boss", 50)).toBe(true);
});

test.each<[by: string, reason: string]>([
  ["stranger", "not this reviewer's"],
  ["service", "not this reviewer's"],
  ["", "not this reviewer's"],
  ["author", "his own work"],
])("%j may not decide", (by, message) => {
  expect(() => decide(review, approve(by), 60)).toThrow(message);
});

test("it is decided once; the same decision again changes nothing", () => {
  const decided = decide(review, approve("first", "fine"), 1);
  expect(decide(decided, approve("first", "fine"), 500)).toBe(decided);
  for (const other of [
    approve("second", "fine"),
    approve("first", "other"),
    { ...approve("first", "fine"), verdict: "rejected" } as const,
  ]) {
    expect(() => decide(decided, other, 2)).toThrow("over: approved");
  }
  expect(() => withdraw(decided, "service", "", 2)).toThrow("over: approved");
});

test("who does not approve says why", () => {
  for (const verdict of ["rejected", "changes_requested"] as const) {
    expect(() => decide(review, { verdict, reviewer: "first", reason: "  " }, 1)).toThrow(
      "unless it is approved",
    );
    expect(decide(review, { verdict, reviewer: "first", reason: "no" }, 1).decision).toBe(verdict);
  }
});

test("nobody is named to review his own work, and nobody joins after the end", () => {
  validateReview(review);
  expect(() => validateReview({ ...review, author: "second" })).toThrow("his own work");
  expect(() => validateReview({ ...review, author: "boss" })).toThrow("his own work");
  expect(() => validateReview({ ...review, escalationTime: 101 })).toThrow("after the deadline");
});

test("who may decide may ask, while it waits, so often", () => {
  const ask = (reviewer: string, asked = 0, now = 1) =>
    inquire(review, asked, { reviewer, text: "why?" }, now);
  expect(ask("first", 2)).toEqual({ number: 3, inquirer: "first", text: "why?", createTime: 1 });
  expect(() => ask("boss")).toThrow("not this reviewer's");
  expect(() => ask("author")).toThrow("his own work");
  expect(() => ask("first", 0, 100)).toThrow("timed_out");
  expect(() => ask("first", MAX_INQUIRIES)).toThrow("review_inquiries");
});

test("a question is answered once", () => {
  const inquiry = inquire(review, 0, { reviewer: "first", text: "why?" }, 1);
  const given = { answer: "because", answeredBy: "author" };
  const answered = answerInquiry(review, inquiry, given, 2);
  expect(answered).toEqual({ ...inquiry, ...given, answerTime: 2 });
  expect(answerInquiry(review, answered, given, 500)).toBe(answered);
  expect(() => answerInquiry(review, answered, { ...given, answer: "no" }, 3)).toThrow("answered otherwise");
  expect(() => answerInquiry(review, inquiry, given, 100)).toThrow("timed_out");
});
