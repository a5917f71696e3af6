import type { AuditEntry } from "./audit-record.ts";

/**
 * Returns the decisions that stand for the tool calls of one request, in order. The tokens service decides on the token
 * of each call. For a call without a token, only the gateway's decision exists.
 *
 * @param decisions all decisions on tool calls with the request's id
 */
export function callsOf(decisions: readonly AuditEntry[]): AuditEntry[] {
  const onTokens = decisions.filter(({ kind }) => kind === "verify_token");
  return onTokens.length > 0 ? onTokens : [...decisions];
}

/**
 * Returns the decisions on a request's only tool call: the decision on its token, then the gateway's decision on the
 * whole call. A later decision concerns a request that repeats the id.
 */
export function decisionsOn(call: AuditEntry, decisions: readonly AuditEntry[]): AuditEntry[] {
  const whole = decisions.find(
    (other) =>
      other.kind === "call_tool" &&
      other.id > call.id &&
      other.call.resource === call.call.resource &&
      (other.principal === "" || other.principal === call.principal),
  );
  return whole === undefined ? [call] : [call, whole];
}
