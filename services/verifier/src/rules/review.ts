import { DeputeError, ErrorReason, invalid } from "@depute/core";

export type ReviewKind = "human_review" | "oversight" | "start_approval";
export type Verdict = "approved" | "changes_requested" | "rejected";
export type ReviewState = "pending" | Verdict | "withdrawn" | "timed_out";

/** How long there is for a decision unless it is said, in milliseconds (DelegateOS 6.6). */
export const DEFAULT_REVIEW_TIMEOUT_MS = 24 * 3_600_000;

/** What is kept of a review. Times are milliseconds since the Unix epoch. */
export interface Review {
  id: string;
  kind: ReviewKind;
  creator: string;
  subject: string;
  title: string;
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

/** Who may decide at a time. */
export function entitled(review: Review, now: number): readonly string[] {
  return now >= review.escalationTime
    ? [...review.reviewers, ...review.escalationReviewers]
    : review.reviewers;
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
  if (reviewer !== "" && reviewer === review.author) throw conflict();
  if (!entitled(review, now).includes(reviewer)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "the review is not this reviewer's to decide");
  }
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
