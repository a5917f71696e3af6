/** An error of a wire: its JSON-RPC code and its message. */
export interface ErrorRow {
  readonly code: number;
  readonly message: string;
}

/** The error codes of JSON-RPC 2.0 section 5.1. */
export const JSON_RPC = {
  PARSE_ERROR: { code: -32700, message: "Parse error" },
  INVALID_REQUEST: { code: -32600, message: "Invalid Request" },
  METHOD_NOT_FOUND: { code: -32601, message: "Method not found" },
  INVALID_PARAMS: { code: -32602, message: "Invalid params" },
  INTERNAL_ERROR: { code: -32603, message: "Internal error" },
} as const satisfies Record<string, ErrorRow>;

/**
 * Depute's own codes for reasons that have no code in the wires' protocols. Each code is the same on every wire.
 * JSON-RPC reserves -32000 to -32099 for servers. Depute uses -32050 to -32059, because none of the wires' protocols
 * uses this range.
 */
export const OWN = {
  /** Credentials are missing or wrong. */
  UNAUTHENTICATED: { code: -32050, message: "UNAUTHENTICATED" },
  /** The caller is known but has no permission for the call. */
  NOT_ALLOWED: { code: -32051, message: "NOT_ALLOWED" },
  /** The presented token or holder proof does not allow the call. */
  TOKEN_DENIED: { code: -32052, message: "TOKEN_DENIED" },
  /** The object does not exist, or its existence is hidden from the caller. */
  NOT_FOUND: { code: -32053, message: "NOT_FOUND" },
  /** Another object already has the id, or a concurrent call has changed the object. */
  CONFLICT: { code: -32054, message: "CONFLICT" },
  /** The current state of the object does not allow the call. */
  WRONG_STATE: { code: -32055, message: "WRONG_STATE" },
  /** A limit of size, rate or count was exceeded. */
  LIMIT_EXCEEDED: { code: -32056, message: "LIMIT_EXCEEDED" },
  /** A service does not answer, or this process drains. The caller should try again. */
  UNAVAILABLE: { code: -32057, message: "UNAVAILABLE" },
  /** The call's time limit has passed. */
  DEADLINE_EXCEEDED: { code: -32058, message: "DEADLINE_EXCEEDED" },
} as const satisfies Record<string, ErrorRow>;
