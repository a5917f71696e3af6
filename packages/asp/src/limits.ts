/**
 * Maximum number of agents in a session, including the two principals. The ASP specification states no limits; Depute
 * chose all limits in this file.
 */
export const MAX_PARTIES = 16;
/** Maximum number of messages in a session. */
export const MAX_MESSAGES = 10_000;
/** Maximum size of a message in its canonical form, in bytes. */
export const MAX_MESSAGE_BYTES = 262_144;
/** Maximum size in bytes of all messages of a session in their canonical forms. A transcript then fits into memory. */
export const MAX_SESSION_BYTES = 33_554_432;
/**
 * Maximum number of objects that a session may open in total: proposals, commitments, delegations, questions,
 * escalations.
 */
export const MAX_OBJECTS = 1_000;
/** Maximum number of objects that are open at the same time. */
export const MAX_OPEN_OBJECTS = 100;
/** Maximum number of successive counter-proposals. */
export const MAX_COUNTER_ROUNDS = 20;
/** Maximum depth of delegations. A delegate with full authority may bring in another delegate, one level deeper. */
export const MAX_DELEGATION_DEPTH = 3;
/**
 * Milliseconds to wait for the answer to an invitation, and then for the introductions of both parties. (ASP sessions)
 */
export const INVITATION_TIMEOUT_MS = 30_000;
/** Default duration of a session in milliseconds, for an invitation that states no duration. */
export const DEFAULT_DURATION_MS = 3_600_000;
/** Maximum duration in milliseconds that an invitation may request. */
export const MAX_DURATION_MS = 7 * 86_400_000;
/**
 * Maximum time in milliseconds without a message in a session. The maximum does not apply while the session waits for
 * a higher authority.
 */
export const IDLE_TIMEOUT_MS = 900_000;
/** Milliseconds within which the other participants must close after the first principal has closed. */
export const CLOSE_GRACE_MS = 60_000;
/**
 * Maximum difference in milliseconds between the server's time and a message's timestamp, or the `iat` of the message's
 * proof.
 */
export const MAX_CLOCK_SKEW_MS = 60_000;
