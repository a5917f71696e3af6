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
};

export function reviewState(state: ReviewState): { readonly label: string; readonly tone: Tone } {
  const [label, tone] = STATES[state] ?? STATES[ReviewState.UNSPECIFIED];
  return { label, tone };
}

export function reviewKind(kind: ReviewKind): string {
  return KINDS[kind] ?? KINDS[ReviewKind.UNSPECIFIED];
}

/**
 * Returns the ids that a review's subject contains: the task of an oversight, or the contract of an output.
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
