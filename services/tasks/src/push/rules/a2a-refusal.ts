import { PeerFault, REFUSED, UNREACHABLE } from "./refusal.ts";

/** The domain of A2A's errors in google.rpc.ErrorInfo. (A2A 5.4) */
export const A2A_DOMAIN = "a2a-protocol.org";

/** Maps the JSON-RPC codes of A2A's errors to their reasons in google.rpc.ErrorInfo. (A2A 5.4) */
const REASONS: ReadonlyMap<number, string> = new Map([
  [-32001, "TASK_NOT_FOUND"],
  [-32002, "TASK_NOT_CANCELABLE"],
  [-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
  [-32004, "UNSUPPORTED_OPERATION"],
  [-32005, "CONTENT_TYPE_NOT_SUPPORTED"],
  [-32006, "INVALID_AGENT_RESPONSE"],
  [-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"],
  [-32008, "EXTENSION_SUPPORT_REQUIRED"],
  [-32009, "VERSION_NOT_SUPPORTED"],
]);

const CODES: ReadonlyMap<string, number> = new Map([...REASONS].map(([code, reason]) => [reason, code]));

export const A2A_TASK_NOT_FOUND = -32001;
export const A2A_UNSUPPORTED_OPERATION = -32004;

/** JSON-RPC's code for a fault inside the server. */
const INTERNAL = -32603;

/**
 * Returns the fault for an error with a JSON-RPC code. For an internal error of the agent, the fault is retryable; any
 * other fault is not.
 */
export function faultOfCode(code: number, message: string): PeerFault {
  const reason = REASONS.get(code);
  const text = message || `the agent refused the call with code ${code}`;
  if (reason !== undefined) return new PeerFault({ reason, retryable: false }, text, { code });
  return new PeerFault(code === INTERNAL ? UNREACHABLE : REFUSED, text, { code });
}

/** Returns the fault for an error that A2A defines, by its reason; undefined for another reason. */
export function faultOfReason(reason: string, message: string): PeerFault | undefined {
  const code = CODES.get(reason);
  return code === undefined ? undefined : faultOfCode(code, message);
}
