/** Longest serialised token, in characters. V8 hashes longer strings by their length alone, so caches would be flooded. */
export const MAX_TOKEN_CHARS = 16_000;
/** Most attenuations in a token. */
export const MAX_ATTENUATIONS = 32;
/** Most capabilities in one block. */
export const MAX_CAPABILITIES = 64;
/** Longest resource or pattern, in UTF-16 code units. */
export const MAX_RESOURCE_CHARS = 1024;
/** Longest namespace or action, in characters. */
export const MAX_NAME_CHARS = 64;
/** Deepest nesting of JSON in a token, looked at before it is parsed; the format itself needs 5. */
export const MAX_TOKEN_NESTING = 8;
/** Longest holder proof, in characters. */
export const MAX_PROOF_CHARS = 4096;
/** Work that the containment checks of one token may take, in steps of its automata. */
export const MAX_CONTAINMENT_WORK = 50_000;

/** Life of a token unless its issuer says otherwise, in milliseconds (DelegateOS 3.6). */
export const DEFAULT_LIFETIME_MS = 3_600_000;
/** Longest life of a token that a verifier accepts unless told otherwise, in milliseconds (DelegateOS 3.6). */
export const MAX_LIFETIME_MS = 86_400_000;
/** How far the clocks of two machines may differ, in milliseconds. */
export const CLOCK_SKEW_MS = 30_000;
/** How long after its `iat` a holder proof is accepted, in milliseconds. */
export const PROOF_WINDOW_MS = 60_000;
/** Life of a session of proofs unless its verifier says otherwise, in milliseconds. */
export const SESSION_LIFETIME_MS = 900_000;
/** Calls of a session that may overtake one another. */
export const SESSION_WINDOW = 1024;
/** Sessions that a verifier keeps unless told otherwise, at about 1 KB each, and those of one principal among them. */
export const MAX_SESSIONS = 100_000;
export const MAX_SESSIONS_OF_ONE = 64;
