/** The failure's word when an overseer rejected a result. */
export const REVIEW_REJECTED = "REVIEW_REJECTED";

/** The failure's word when the review of a result ended without a decision. */
export const REVIEW_TIMED_OUT = "REVIEW_TIMED_OUT";
