import { type CallDecision, currentRequest } from "@depute/mcp";
import type { ServiceDeps } from "@depute/service";

/** Maximum length of each text in an audit record, in characters. */
const MAX_TEXT = 256;

/**
 * Returns a function that records the decisions on calls of MCP servers. If the audit trail is full, the call is
 * refused.
 *
 * @param audit the audit trail of the gateway
 */
export function auditedBy(audit: ServiceDeps["audit"]) {
  return (server: string, decided: CallDecision): void => {
    const { method, name, principal, login = "", blocks, isAllowed, reason } = decided;
    const { requestId = "", address = "" } = currentRequest() ?? {};
    if (audit === undefined) return;
    audit.assertRoom();
    audit.add({
      kind: "call_tool",
      call: {
        ...{ caller: principal || login, organization: "", address, wire: "mcp", rpc: cut(method) },
        ...{ onBehalfOf: "", requestId, traceId: "" },
        credential: principal === "" ? "" : "delegation_token",
      },
      resource: cut(`mcp/${server}/${name}`),
      decision: isAllowed ? "allowed" : "denied",
      reason: cut(reason.toLowerCase()),
      blocks,
    });
  };
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT).toWellFormed();
}
