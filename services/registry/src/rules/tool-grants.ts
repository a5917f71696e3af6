import type { McpBinding } from "@depute/contracts/cap/v1/manifest_pb";
import type { Widening } from "./widening.ts";

/**
 * Maximum number of comparisons in one call, so that a huge manifest cannot block the process. If more are necessary,
 * the result is a single widening: all bindings together count as wider.
 */
const MAX_STEPS = 200_000;

const PATH = "agent.manifest.mcp_bindings";

/**
 * Returns each server, each tool, and each scope of a tool, that the new bindings add. If several bindings of a server
 * allow a tool, the tool has the scopes of all of them. (CAP "MCP Integration")
 */
export function toolWidenings(after: readonly McpBinding[], before: readonly McpBinding[]): Widening[] {
  const knownGrants = groupByServer(before);
  const widenings = new Map<string, Widening>();
  let steps = 0;
  for (const binding of after) {
    const servers = knownGrants.get(binding.serverId) ?? [];
    const path = `${PATH}["${binding.serverId}"]`;
    if (servers.length === 0) {
      widenings.set(path, {
        path,
        before: "no binding",
        after: `${new Set(binding.allowedTools).size} tools`,
      });
      continue;
    }
    for (const tool of new Set(binding.allowedTools)) {
      const granting = servers.filter(({ tools }) => tools.has(tool));
      steps += servers.length + granting.length * binding.scopes.length;
      if (steps > MAX_STEPS) return [{ path: PATH, before: "comparable", after: "too large to compare" }];
      const toolPath = `${path}.allowed_tools["${tool}"]`;
      if (granting.length === 0) {
        widenings.set(toolPath, { path: toolPath, before: "not allowed", after: "allowed" });
        continue;
      }
      for (const scope of new Set(binding.scopes)) {
        if (granting.some(({ scopes }) => scopes.has(scope))) continue;
        const scopePath = `${toolPath}.scopes["${scope}"]`;
        widenings.set(scopePath, { path: scopePath, before: "not granted", after: "granted" });
      }
    }
  }
  return [...widenings.values()];
}

interface Grants {
  readonly tools: ReadonlySet<string>;
  readonly scopes: ReadonlySet<string>;
}

function groupByServer(bindings: readonly McpBinding[]): Map<string, Grants[]> {
  const groups = new Map<string, Grants[]>();
  for (const { serverId, allowedTools, scopes } of bindings) {
    const group = groups.get(serverId) ?? [];
    group.push({ tools: new Set(allowedTools), scopes: new Set(scopes) });
    groups.set(serverId, group);
  }
  return groups;
}
