/** The reason why work at an endpoint failed, for the task's failure. */
export interface Refusal {
  readonly reason: string;
  /** Whether another attempt may succeed. */
  readonly retryable: boolean;
}

/**
 * Thrown if an endpoint did not do the requested work. The message is for people, and truncated, because it may quote
 * the endpoint's response.
 */
export class PeerFault extends Error implements Refusal {
  override readonly name = "PeerFault";
  readonly reason: string;
  readonly retryable: boolean;
  /** The error code of NEKTE or A2A; undefined if the endpoint sent none. */
  readonly code: number | undefined;
  /** The `data` member of the endpoint's JSON-RPC error. */
  readonly data: unknown;

  constructor(
    { reason, retryable }: Refusal,
    message: string,
    details: { code?: number; data?: unknown } = {},
  ) {
    super(message.slice(0, MAX_MESSAGE));
    this.reason = reason;
    this.retryable = retryable;
    this.code = details.code;
    this.data = details.data;
  }
}

const MAX_MESSAGE = 500;

/** No connection, no response in time, or a fault inside the endpoint. */
export const UNREACHABLE: Refusal = { reason: "ENDPOINT_UNREACHABLE", retryable: true };
/** Credentials are missing or wrong, or there is no NEKTE or A2A server at the address. */
export const REFUSED: Refusal = { reason: "ENDPOINT_REFUSED", retryable: false };
/** The response does not conform to the endpoint's protocol, or is about another task. A retry would not help. */
export const MALFORMED: Refusal = { reason: "ENDPOINT_MALFORMED", retryable: false };
/** The endpoint sent more bytes or events than the limits allow. */
export const TOO_MUCH: Refusal = { reason: "LIMIT_EXCEEDED", retryable: false };
/** The endpoint's task has ended, but its result is no longer available. */
export const RESULT_LOST: Refusal = { reason: "ENDPOINT_RESULT_LOST", retryable: true };
/** The settings do not allow calls to the agent's address. */
export const NOT_ALLOWED: Refusal = { reason: "ADDRESS_NOT_ALLOWED", retryable: false };

/** Maps NEKTE's error codes to the platform's failure reasons. (NEKTE 2 to 6, NEKTE library) */
const WORDS: ReadonlyMap<number, string> = new Map([
  [-32001, "VERSION_MISMATCH"],
  [-32002, "CAPABILITY_NOT_FOUND"],
  [-32003, "BUDGET_EXCEEDED"],
  [-32004, "CONTEXT_EXPIRED"],
  [-32005, "CONTEXT_PERMISSION_DENIED"],
  [-32006, "TASK_TIMEOUT"],
  [-32007, "TASK_FAILED"],
  [-32008, "VERIFICATION_FAILED"],
  [-32009, "TASK_NOT_FOUND"],
  [-32010, "TASK_NOT_CANCELLABLE"],
  [-32011, "TASK_NOT_RESUMABLE"],
]);

/** Error codes for a fault inside the server, in JSON-RPC and in NEKTE's library. */
const INTERNAL: ReadonlySet<number> = new Set([-32603, -32000]);

export const TASK_NOT_FOUND = -32009;
export const VERSION_MISMATCH = -32001;
export const TASK_NOT_RESUMABLE = -32011;

/**
 * Returns the reason and retryability for an endpoint's error code. Only an internal error is retryable. With any other
 * code, the endpoint has refused the work.
 */
export function refusalOf(code: number): Refusal {
  const reason = WORDS.get(code);
  if (reason !== undefined) return { reason, retryable: false };
  return INTERNAL.has(code) ? UNREACHABLE : REFUSED;
}
