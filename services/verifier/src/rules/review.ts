import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { tooMany } from "./limits.ts";

export type ReviewKind = "human_review" | "oversight" | "start_approval";
export type Verdict = "approved" | "changes_requested" | "rejected";
export type ReviewState = "pending" | Verdict | "withdrawn" | "timed_out";

/** How long there is for a decision unless it is said, in milliseconds (DelegateOS 6.6). */
export const DEFAULT_REVIEW_TIMEOUT_MS = 24 * 3_600_000;

/** Content that is kept elsewhere. Empty strings for what is not known. */
export interface ContentReference {
  uri: string;
  digest: string;
  mediaType: string;
}

/** A reviewer's question. Times are milliseconds since the Unix epoch. */
export interface Inquiry {
  /** From 1. */
  number: number;
  inquirer: string;
  text: string;
  createTime: number;
  answer?: string | undefined;
  answeredBy?: string | undefined;
  answerTime?: number | undefined;
}

/** Most inquiries of one review. */
export const MAX_INQUIRIES = 32;

/** What is kept of a review. Times are milliseconds since the Unix epoch. */
export interface Review {
  id: string;
  kind: ReviewKind;
  creator: string;
  subject: string;
  title: string;
  /** Where what is reviewed is kept, if the creator does not hand it over. */
  contentReference?: ContentReference | undefined;
  author: string;
  reviewers: readonly string[];
  escalationReviewers: readonly string[];
  /** When the escalation's reviewers join. */
  escalationTime: number;
  deadline: number;
  createTime: number;
  decision?: Verdict | "withdrawn" | undefined;
  decidedBy?: string | undefined;
  reason?: string | undefined;
  decideTime?: number | undefined;
}

/** How far a review is. A time-out is nothing that happens: it follows from the deadline. */
export function stateOf({ decision, deadline }: Review, now: number): ReviewState {
  return decision ?? (now >= deadline ? "timed_out" : "pending");
}

/** Whether the escalation of a review has come. */
export function isEscalated({ escalationTime }: Review, now: number): boolean {
  return now >= escalationTime;
}

/**
 * When time changes a review next, epoch milliseconds: at its escalation, then at its deadline.
 *
 * @param now the time up to which changes are recorded; nothing while none is
 * @returns nothing for a review that is decided or timed out
 */
export function nextChange(review: Review, now = Number.NEGATIVE_INFINITY): number | undefined {
  if (review.decision !== undefined) return undefined;
  return [review.escalationTime, review.deadline].find((time) => time > now);
}

/** Who may decide at a time. */
export function entitled(review: Review, now: number): readonly string[] {
  return isEscalated(review, now) ? [...review.reviewers, ...review.escalationReviewers] : review.reviewers;
}

/** Whether a principal may know of a review. */
export function mayRead(review: Review, principal: string, now: number): boolean {
  return principal === review.creator || entitled(review, now).includes(principal);
}

/** @throws DeputeError CONFLICT_OF_INTEREST, INVALID_REQUEST */
export function validateReview(review: Review): void {
  const { author, reviewers, escalationReviewers, escalationTime, deadline } = review;
  if (author !== "" && [...reviewers, ...escalationReviewers].includes(author)) throw conflict();
  if (escalationTime > deadline) throw invalid("escalate_after_seconds", "lies after the deadline");
}

/** What somebody makes of a review. */
export interface Decision {
  verdict: Verdict;
  reviewer: string;
  reason: string;
}

/**
 * The review as decided; the same one when this very decision was made before.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST, REVIEW_CLOSED, INVALID_REQUEST
 */
export function decide(review: Review, { verdict, reviewer, reason }: Decision, now: number): Review {
  assertEntitled(review, reviewer, now);
  if (verdict !== "approved" && reason.trim() === "") {
    throw invalid("reason", "is needed unless it is approved");
  }
  const same = review.decision === verdict && review.decidedBy === reviewer && review.reason === reason;
  if (same) return review;
  assertPending(review, now);
  return { ...review, decision: verdict, decidedBy: reviewer, reason, decideTime: now };
}

/** @throws DeputeError REVIEW_CLOSED */
export function withdraw(review: Review, by: string, reason: string, now: number): Review {
  if (review.decision === "withdrawn") return review;
  assertPending(review, now);
  return { ...review, decision: "withdrawn", decidedBy: by, reason, decideTime: now };
}

/**
 * Another question about a review.
 *
 * @param asked how many there were
 * @throws DeputeError CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST, REVIEW_CLOSED, LIMIT_EXCEEDED
 */
export function inquire(
  review: Review,
  asked: number,
  { reviewer, text }: { reviewer: string; text: string },
  now: number,
): Inquiry {
  assertEntitled(review, reviewer, now);
  assertPending(review, now);
  if (asked >= MAX_INQUIRIES) throw tooMany("review_inquiries", MAX_INQUIRIES);
  return { number: asked + 1, inquirer: reviewer, text, createTime: now };
}

/**
 * The question with its answer; the same one when this very answer was given before.
 *
 * @throws DeputeError REVIEW_CLOSED, INQUIRY_ANSWERED
 */
export function answerInquiry(
  review: Review,
  inquiry: Inquiry,
  { answer, answeredBy }: { answer: string; answeredBy: string },
  now: number,
): Inquiry {
  if (inquiry.answer === answer && inquiry.answeredBy === answeredBy) return inquiry;
  assertPending(review, now);
  if (inquiry.answer !== undefined) {
    throw new DeputeError(ErrorReason.INQUIRY_ANSWERED, "the inquiry was answered otherwise", {
      metadata: { review: review.id, inquiry: String(inquiry.number) },
    });
  }
  return { ...inquiry, answer, answeredBy, answerTime: now };
}

function assertEntitled(review: Review, reviewer: string, now: number): void {
  if (reviewer !== "" && reviewer === review.author) throw conflict();
  if (!entitled(review, now).includes(reviewer)) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "the review is not this reviewer's to decide; a caller without credentials names one of its reviewers in `reviewer`",
    );
  }
}

function assertPending(review: Review, now: number): void {
  const state = stateOf(review, now);
  if (state === "pending") return;
  throw new DeputeError(ErrorReason.REVIEW_CLOSED, `the review is over: ${state}`, {
    metadata: { review: review.id, state },
  });
}

function conflict(): DeputeError {
  return new DeputeError(ErrorReason.CONFLICT_OF_INTEREST, "nobody reviews his own work", {
    metadata: { role: "reviewer" },
  });
}
