import type { CallDecision } from "@depute/mcp";
import type { ServiceDeps } from "@depute/service";

/** Maximum number of characters of each text of a record. */
const MAX_TEXT = 256;

/**
 * Returns a function that records the decisions on calls of MCP servers. A full audit trail refuses the call.
 *
 * @param audit the trail of the gateway
 */
export function auditedBy(audit: ServiceDeps["audit"]) {
  return (server: string, { method, name, principal, isAllowed, reason }: CallDecision): void => {
    if (audit === undefined) return;
    audit.assertRoom();
    audit.add({
      kind: "call_tool",
      call: {
        ...{ caller: principal, organization: "", address: "", wire: "mcp", rpc: cut(method) },
        ...{ onBehalfOf: "", requestId: "", traceId: "" },
        credential: principal === "" ? "" : "delegation_token",
      },
      resource: cut(`mcp/${server}/${name}`),
      decision: isAllowed ? "allowed" : "denied",
      reason: cut(reason.toLowerCase()),
      blocks: [],
    });
  };
}

function cut(text: string): string {
  return text.slice(0, MAX_TEXT).toWellFormed();
}
