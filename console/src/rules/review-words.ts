import { ReviewKind, ReviewState } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { Tone } from "./task-status.ts";

const STATES: Readonly<Record<ReviewState, readonly [string, Tone]>> = {
  [ReviewState.UNSPECIFIED]: ["Unknown", "neutral"],
  [ReviewState.PENDING]: ["Pending", "waiting"],
  [ReviewState.APPROVED]: ["Approved", "good"],
  [ReviewState.CHANGES_REQUESTED]: ["Changes requested", "waiting"],
  [ReviewState.REJECTED]: ["Rejected", "bad"],
  [ReviewState.WITHDRAWN]: ["Withdrawn", "neutral"],
  [ReviewState.TIMED_OUT]: ["Timed out", "bad"],
};

const KINDS: Readonly<Record<ReviewKind, string>> = {
  [ReviewKind.UNSPECIFIED]: "Review",
  [ReviewKind.HUMAN_REVIEW]: "Output against its contract",
  [ReviewKind.OVERSIGHT]: "Result of a task",
  [ReviewKind.START_APPROVAL]: "Start of work",
  [ReviewKind.GRANT]: "Proposed grant",
};

export function reviewState(state: ReviewState): { readonly label: string; readonly tone: Tone } {
  const [label, tone] = STATES[state] ?? STATES[ReviewState.UNSPECIFIED];
  return { label, tone };
}

/** Returns the heading of a review's content. */
export function contentTitle(kind: ReviewKind): string {
  if (kind === ReviewKind.GRANT) return "Proposal";
  return kind === ReviewKind.START_APPROVAL ? "Request" : "Result";
}

/** The effect that each verdict on a review has. */
export interface VerdictEffects {
  readonly APPROVED: string;
  readonly CHANGES_REQUESTED: string;
  readonly REJECTED: string;
}

const OF_WORK: VerdictEffects = {
  APPROVED: "The work continues, and its result goes to the delegator.",
  CHANGES_REQUESTED: "The work is done again, with your reason.",
  REJECTED: "The work ends without a result.",
};
const OF_GRANT: VerdictEffects = {
  APPROVED: "The platform makes the grant in your name.",
  CHANGES_REQUESTED: "Nothing is granted. The proposer reads your reason and may propose again.",
  REJECTED: "Nothing is granted. The proposer reads your reason.",
};

export function verdictEffects(kind: ReviewKind): VerdictEffects {
  return kind === ReviewKind.GRANT ? OF_GRANT : OF_WORK;
}

export function reviewKind(kind: ReviewKind): string {
  return KINDS[kind] ?? KINDS[ReviewKind.UNSPECIFIED];
}

/**
 * Splits a review's subject into ids. An oversight has a `taskId`, a human_review a `contractId`; ids that the kind
 * does not have are empty.
 *
 * @param subject the subject's text, as the service that created the review wrote it
 */
export function subjectOf(
  kind: ReviewKind,
  subject: string,
): { readonly taskId: string; readonly contractId: string } {
  const [first = ""] = subject.split(" ", 1);
  return {
    taskId: kind === ReviewKind.OVERSIGHT ? first : "",
    contractId: kind === ReviewKind.HUMAN_REVIEW ? first : "",
  };
}
