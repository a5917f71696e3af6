/** Why work at an endpoint did not go well, as the task's failure says it. */
export interface Refusal {
  readonly reason: string;
  /** Whether another attempt may succeed. */
  readonly retryable: boolean;
}

/** Thrown where an endpoint did not do as it was asked. The message is for people and holds no answer's text unbounded. */
export class PeerFault extends Error implements Refusal {
  override readonly name = "PeerFault";
  readonly reason: string;
  readonly retryable: boolean;
  /** NEKTE's code, where the endpoint gave one. */
  readonly code: number | undefined;
  /** The data of a JSON-RPC error. */
  readonly data: unknown;

  constructor({ reason, retryable }: Refusal, message: string, told: { code?: number; data?: unknown } = {}) {
    super(message.slice(0, MAX_MESSAGE));
    this.reason = reason;
    this.retryable = retryable;
    this.code = told.code;
    this.data = told.data;
  }
}

const MAX_MESSAGE = 500;

/** No connection, no answer in time, or the endpoint's own fault. */
export const UNREACHABLE: Refusal = { reason: "ENDPOINT_UNREACHABLE", retryable: true };
/** Credentials are missing or wrong, or nothing is served there. */
export const REFUSED: Refusal = { reason: "ENDPOINT_REFUSED", retryable: false };
/** What came is not NEKTE, or of another task. Who answers so is not asked again. */
export const MALFORMED: Refusal = { reason: "ENDPOINT_MALFORMED", retryable: false };
/** More bytes or events than are taken. */
export const TOO_MUCH: Refusal = { reason: "LIMIT_EXCEEDED", retryable: false };
/** The endpoint has ended the task, and what came of it cannot be had. */
export const RESULT_LOST: Refusal = { reason: "ENDPOINT_RESULT_LOST", retryable: true };
/** The agent's address is not one that the platform may call. */
export const NOT_ALLOWED: Refusal = { reason: "ADDRESS_NOT_ALLOWED", retryable: false };

/** NEKTE's codes by their words, which are those of the platform's vocabulary. (NEKTE 2 to 6, NEKTE library) */
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

/** The server's own fault, by JSON-RPC and by NEKTE's library. */
const INTERNAL: ReadonlySet<number> = new Set([-32603, -32000]);

export const TASK_NOT_FOUND = -32009;
export const VERSION_MISMATCH = -32001;
export const TASK_NOT_RESUMABLE = -32011;

/**
 * What an endpoint's error code makes of the attempt. What the endpoint itself calls failed is not tried again: its retries
 * are its own.
 */
export function refusalOf(code: number): Refusal {
  const reason = WORDS.get(code);
  if (reason !== undefined) return { reason, retryable: false };
  return INTERNAL.has(code) ? UNREACHABLE : REFUSED;
}
