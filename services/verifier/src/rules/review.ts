import { DeputeError, ErrorReason, invalid } from "@depute/core";
import { tooMany } from "./limits.ts";

export type ReviewKind = "human_review" | "oversight" | "start_approval" | "grant";
/** A role. Each principal with the role may decide a review that names the role. */
export type ReviewerRole = "operator";
export type Verdict = "approved" | "changes_requested" | "rejected";
export type ReviewState = "pending" | Verdict | "withdrawn" | "timed_out";

/** Default time for the decision of a review, in milliseconds (DelegateOS 6.6). */
export const DEFAULT_REVIEW_TIMEOUT_MS = 24 * 3_600_000;

/** A reference to content that another system stores. A member is empty if it is unknown. */
export interface ContentReference {
  uri: string;
  /** SHA-256 of the content, base64url. */
  digest: string;
  mediaType: string;
}

/** A reviewer's question. Times are epoch milliseconds. */
export interface Inquiry {
  /** The inquiry's position among the inquiries of the review, starting at 1. */
  number: number;
  inquirer: string;
  text: string;
  createTime: number;
  answer?: string | undefined;
  answeredBy?: string | undefined;
  answerTime?: number | undefined;
}

/** Maximum number of inquiries of one review. */
export const MAX_INQUIRIES = 32;

/** A stored review. Times are epoch milliseconds. */
export interface Review {
  id: string;
  kind: ReviewKind;
  creator: string;
  /** The organization that owns the review; empty without an organization. */
  organization: string;
  subject: string;
  title: string;
  /** A reference to the content; absent if the store has the content itself. */
  contentReference?: ContentReference | undefined;
  author: string;
  reviewers: readonly string[];
  escalationReviewers: readonly string[];
  /** The roles whose principals may also decide the review; absent if no role may. */
  reviewerRoles?: readonly ReviewerRole[] | undefined;
  /** The time from which the escalation reviewers may decide, in epoch milliseconds. */
  escalationTime: number;
  deadline: number;
  createTime: number;
  decision?: Verdict | "withdrawn" | undefined;
  decidedBy?: string | undefined;
  reason?: string | undefined;
  decideTime?: number | undefined;
}

/**
 * Returns the state of a review at a time. A pending review is timed out from its deadline on, even before that is
 * recorded.
 */
export function stateOf({ decision, deadline }: Review, now: number): ReviewState {
  return decision ?? (now >= deadline ? "timed_out" : "pending");
}

/** Whether the escalation reviewers may decide: true from the escalation time on. */
export function isEscalated({ escalationTime }: Review, now: number): boolean {
  return now >= escalationTime;
}

/**
 * Returns the time, in epoch milliseconds, of the review's next change without a call: its escalation or, after that,
 * its deadline.
 *
 * @param now changes up to this time are already recorded
 * @returns undefined if the review is decided, or if no change follows `now`
 */
export function nextChange(review: Review, now = Number.NEGATIVE_INFINITY): number | undefined {
  if (review.decision !== undefined) return undefined;
  return [review.escalationTime, review.deadline].find((time) => time > now);
}

/** Returns the reviewers that may decide at a time, without those that may decide by a role. */
export function entitledReviewers(review: Review, now: number): readonly string[] {
  return isEscalated(review, now) ? [...review.reviewers, ...review.escalationReviewers] : review.reviewers;
}

/** A principal that reads or decides a review, with its roles. */
export interface Reader {
  readonly principal: string;
  readonly roles?: readonly string[] | undefined;
}

/** Whether a principal may decide the review at a time. */
function isReviewer(review: Review, { principal, roles = [] }: Reader, now: number): boolean {
  const { reviewerRoles = [] } = review;
  return (
    entitledReviewers(review, now).includes(principal) || reviewerRoles.some((role) => roles.includes(role))
  );
}

/** Whether a principal may read the review at a time: as its creator, or because it may decide the review. */
export function mayRead(review: Review, reader: Reader, now: number): boolean {
  return reader.principal === review.creator || isReviewer(review, reader, now);
}

/**
 * Requires that the author is not a reviewer, and that the escalation is not after the deadline.
 *
 * @throws DeputeError CONFLICT_OF_INTEREST, INVALID_REQUEST
 */
export function validateReview(review: Review): void {
  const { author, reviewers, escalationReviewers, escalationTime, deadline } = review;
  if (author !== "" && [...reviewers, ...escalationReviewers].includes(author)) throw conflict();
  if (escalationTime > deadline) throw invalid("escalate_after", "must not be after the deadline");
}

/** A reviewer's decision. */
export interface Decision {
  verdict: Verdict;
  reviewer: string;
  reason: string;
  /** The roles of the reviewer; absent if the reviewer has none. */
  roles?: readonly string[] | undefined;
  /** The principal that makes the call. It may act for the reviewer. */
  caller: string;
}

/**
 * Returns the review with a decision. A replay returns the review unchanged.
 *
 * @throws DeputeError CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST, REVIEW_CLOSED, INVALID_REQUEST
 */
export function decide(
  review: Review,
  { verdict, reviewer, reason, roles, caller }: Decision,
  now: number,
): Review {
  assertReviewer(review, { principal: reviewer, roles }, now);
  if (review.kind === "grant" && caller !== reviewer) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "only the reviewer itself may decide a proposed grant; call with the reviewer's credentials",
      { violations: [{ field: "reviewer", description: "must be the caller" }] },
    );
  }
  if (verdict !== "approved" && reason.trim() === "") {
    throw invalid("reason", "is required unless the verdict is approved");
  }
  const same = review.decision === verdict && review.decidedBy === reviewer && review.reason === reason;
  if (same) return review;
  assertPending(review, now);
  return { ...review, decision: verdict, decidedBy: reviewer, reason, decideTime: now };
}

/**
 * Returns the review as withdrawn. A replay returns the review unchanged.
 *
 * @throws DeputeError REVIEW_CLOSED
 */
export function withdraw(review: Review, by: string, reason: string, now: number): Review {
  if (review.decision === "withdrawn") return review;
  assertPending(review, now);
  return { ...review, decision: "withdrawn", decidedBy: by, reason, decideTime: now };
}

/**
 * Returns the next inquiry of a review.
 *
 * @param inquiryCount number of existing inquiries of the review
 * @throws DeputeError CALLER_NOT_ALLOWED, CONFLICT_OF_INTEREST, REVIEW_CLOSED, LIMIT_EXCEEDED
 */
export function inquire(
  review: Review,
  inquiryCount: number,
  { reviewer, text }: { reviewer: string; text: string },
  now: number,
): Inquiry {
  assertReviewer(review, { principal: reviewer }, now);
  assertPending(review, now);
  if (inquiryCount >= MAX_INQUIRIES) throw tooMany("review_inquiries", MAX_INQUIRIES);
  return { number: inquiryCount + 1, inquirer: reviewer, text, createTime: now };
}

/**
 * Returns an inquiry with its answer. A replay returns the inquiry unchanged.
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
    throw new DeputeError(ErrorReason.INQUIRY_ANSWERED, "the inquiry already has another answer", {
      metadata: { review: review.id, inquiry: String(inquiry.number) },
    });
  }
  return { ...inquiry, answer, answeredBy, answerTime: now };
}

function assertReviewer(review: Review, reviewer: Reader, now: number): void {
  const { principal } = reviewer;
  if (principal !== "" && principal === review.author) throw conflict();
  if (!isReviewer(review, reviewer, now)) {
    throw new DeputeError(
      ErrorReason.CALLER_NOT_ALLOWED,
      "the principal is not a reviewer of this review; a caller without credentials sets `reviewer` to one of them",
    );
  }
}

function assertPending(review: Review, now: number): void {
  const state = stateOf(review, now);
  if (state === "pending") return;
  throw new DeputeError(ErrorReason.REVIEW_CLOSED, `the review is closed: ${state}`, {
    metadata: { review: review.id, state },
  });
}

function conflict(): DeputeError {
  return new DeputeError(
    ErrorReason.CONFLICT_OF_INTEREST,
    "the author of the work may not review it; name another reviewer",
    {
      metadata: { role: "reviewer" },
    },
  );
}
