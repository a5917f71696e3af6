import type { AuditEntry } from "./audit-record.ts";

/**
 * Returns one decision for each tool call of a request, in order: the tokens service's decision on the call's token. If
 * no call has a token, returns the gateway's decisions.
 *
 * @param decisions all decisions on tool calls under the request's id
 */
export function callsOf(decisions: readonly AuditEntry[]): AuditEntry[] {
  const onTokens = decisions.filter(({ kind }) => kind === "verify_token");
  return onTokens.length > 0 ? onTokens : [...decisions];
}

/**
 * Returns the decisions on the only tool call of a request: the given decision on its token, then the first later
 * decision of the gateway on the same call. Further decisions belong to a request that repeats the id.
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
