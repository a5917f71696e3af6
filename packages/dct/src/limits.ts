/**
 * Maximum length of a serialised token, in characters. V8 hashes much longer strings by their length alone, so an
 * attacker could fill caches with colliding keys.
 */
export const MAX_TOKEN_CHARS = 16_000;
/** Maximum number of attenuations in a token. */
export const MAX_ATTENUATIONS = 32;
/** Maximum number of capabilities in one block. */
export const MAX_CAPABILITIES = 64;
/** Maximum length of a resource or pattern, in UTF-16 code units. */
export const MAX_RESOURCE_CHARS = 1024;
/** Maximum length of a namespace or action, in characters. */
export const MAX_NAME_CHARS = 64;
/** Maximum nesting of a token's JSON, which is checked before the JSON is parsed. The format itself needs 5 levels. */
export const MAX_TOKEN_NESTING = 8;
/** Maximum length of a holder proof, in characters. */
export const MAX_PROOF_CHARS = 4096;
/**
 * Maximum work of the containment checks of one token, in steps of the walk. A step of a long pattern counts more
 * than once.
 */
export const MAX_CONTAINMENT_WORK = 50_000;

/** Default lifetime of a token, in milliseconds (DelegateOS 3.6). */
export const DEFAULT_LIFETIME_MS = 3_600_000;
/** Default maximum token lifetime that a verifier accepts, in milliseconds (DelegateOS 3.6). */
export const MAX_LIFETIME_MS = 86_400_000;
/** Maximum difference between the clocks of two machines, in milliseconds. */
export const CLOCK_SKEW_MS = 30_000;
/** Milliseconds after its `iat` during which a holder proof is accepted. */
export const PROOF_WINDOW_MS = 60_000;
/** Default lifetime of a holder session, in milliseconds. */
export const SESSION_LIFETIME_MS = 900_000;
/** Number of recent calls of a holder session that may arrive out of order. */
export const SESSION_WINDOW = 1024;
/**
 * Default maximum number of holder sessions that a verifier stores, at about 1 KB each. MAX_SESSIONS_OF_ONE is the
 * maximum for one principal.
 */
export const MAX_SESSIONS = 100_000;
export const MAX_SESSIONS_OF_ONE = 64;
