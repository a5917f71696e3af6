/** What no text states; Depute's own limits, because a session without any could be made to cost anything. */

/** Agents in a session, the two that began it among them. */
export const MAX_PARTIES = 16;
/** Messages in a session. */
export const MAX_MESSAGES = 10_000;
/** Bytes of a message in its canonical form. */
export const MAX_MESSAGE_BYTES = 262_144;
/** Bytes of all messages of a session, in their canonical forms: a transcript has to fit into memory. */
export const MAX_SESSION_BYTES = 33_554_432;
/** Objects that a session ever opens: proposals, commitments, delegations, questions, escalations. */
export const MAX_OBJECTS = 1_000;
/** Objects that are open at once. */
export const MAX_OPEN_OBJECTS = 100;
/** Counter-proposals that answer each other. */
export const MAX_COUNTER_ROUNDS = 20;
/** Delegations below each other: a delegate with full authority may bring in another one. */
export const MAX_DELEGATION_DEPTH = 3;

/** How long an invitation waits for its answer, and an accepted one for the introductions, in milliseconds. (ASP sessions) */
export const INVITATION_TIMEOUT_MS = 30_000;
/** How long a session lasts when its invitation does not say. */
export const DEFAULT_DURATION_MS = 3_600_000;
/** The longest that an invitation may ask for. */
export const MAX_DURATION_MS = 7 * 86_400_000;
/** How long a session may be silent. A session that waits for a higher authority may be silent for as long as it lasts. */
export const IDLE_TIMEOUT_MS = 900_000;
/** How long the others have to close after the first of the two parties did. */
export const CLOSE_GRACE_MS = 60_000;
/** How far a message's timestamp, and the `iat` of its proof, may be from the time at which it comes. */
export const MAX_CLOCK_SKEW_MS = 60_000;
