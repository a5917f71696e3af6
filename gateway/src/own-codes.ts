/** How a wire says an error: a JSON-RPC code, and the word or sentence that goes with it. */
export interface ErrorRow {
  readonly code: number;
  readonly message: string;
}

/** JSON-RPC 2.0 section 5.1. */
export const JSON_RPC = {
  PARSE_ERROR: { code: -32700, message: "Parse error" },
  INVALID_REQUEST: { code: -32600, message: "Invalid Request" },
  METHOD_NOT_FOUND: { code: -32601, message: "Method not found" },
  INVALID_PARAMS: { code: -32602, message: "Invalid params" },
  INTERNAL_ERROR: { code: -32603, message: "Internal error" },
} as const satisfies Record<string, ErrorRow>;

/**
 * Depute's own codes, for what the families have no code for; the same on every wire. None of the families uses -32050
 * to -32059, which JSON-RPC leaves to servers.
 */
export const OWN = {
  /** Credentials are missing or wrong. */
  UNAUTHENTICATED: { code: -32050, message: "UNAUTHENTICATED" },
  /** The caller is known and may not. */
  NOT_ALLOWED: { code: -32051, message: "NOT_ALLOWED" },
  /** The presented token, or the proof of its holder, does not allow this. */
  TOKEN_DENIED: { code: -32052, message: "TOKEN_DENIED" },
  /** It does not exist, or the caller may not know that it does. */
  NOT_FOUND: { code: -32053, message: "NOT_FOUND" },
  /** The id is taken by something else, or somebody else was first. */
  CONFLICT: { code: -32054, message: "CONFLICT" },
  /** Not in the present state. */
  WRONG_STATE: { code: -32055, message: "WRONG_STATE" },
  /** A size, rate or count limit. */
  LIMIT_EXCEEDED: { code: -32056, message: "LIMIT_EXCEEDED" },
  /** A service does not answer, or this process drains: try again. */
  UNAVAILABLE: { code: -32057, message: "UNAVAILABLE" },
  /** A time limit passed. */
  DEADLINE_EXCEEDED: { code: -32058, message: "DEADLINE_EXCEEDED" },
} as const satisfies Record<string, ErrorRow>;
