import {
  type Review,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import type { Decision } from "../../core/index.ts";

const VERDICTS: Partial<Record<ReviewState, ReviewVerdict>> = {
  [ReviewState.APPROVED]: ReviewVerdict.APPROVED,
  [ReviewState.CHANGES_REQUESTED]: ReviewVerdict.CHANGES_REQUESTED,
  [ReviewState.REJECTED]: ReviewVerdict.REJECTED,
};

/** Returns the decision that ended a review; undefined while the review waits. */
export function decisionOf({ state, reason }: Pick<Review, "state" | "reason">): Decision | undefined {
  if (state === ReviewState.PENDING) return undefined;
  const verdict = VERDICTS[state];
  if (verdict !== undefined) return { verdict, comment: reason };
  return undecided(
    state === ReviewState.TIMED_OUT ? "the time of the review has passed" : "the review was withdrawn",
  );
}

/** Returns the decision for a review that ended without a reviewer's decision. Its verdict is UNSPECIFIED. */
export function undecided(comment: string): Decision {
  return { verdict: ReviewVerdict.UNSPECIFIED, comment };
}
