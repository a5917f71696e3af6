/** The failure reason when an overseer has rejected a result. */
export const REVIEW_REJECTED = "REVIEW_REJECTED";

/** The failure reason when the review of a result ended without a decision. */
export const REVIEW_TIMED_OUT = "REVIEW_TIMED_OUT";
