import type { McpBinding } from "@depute/contracts/cap/v1/manifest_pb";
import type { Widening } from "./widening.ts";

/** Comparisons of one call; bindings beyond it count as wider, so that a huge manifest cannot hold the process. */
const MAX_STEPS = 200_000;

const PATH = "agent.manifest.mcp_bindings";

/**
 * Names each tool, and each scope of a tool, that bindings grant and the bindings before did not. Several bindings of one
 * server add up: a tool has the scopes of all bindings that allow it. (CAP "MCP Integration")
 */
export function toolWidenings(after: readonly McpBinding[], before: readonly McpBinding[]): Widening[] {
  const known = groupByServer(before);
  const found = new Map<string, Widening>();
  let steps = 0;
  for (const binding of after) {
    const servers = known.get(binding.serverId) ?? [];
    const path = `${PATH}["${binding.serverId}"]`;
    if (servers.length === 0) {
      found.set(path, { path, before: "no binding", after: `${new Set(binding.allowedTools).size} tools` });
      continue;
    }
    for (const tool of new Set(binding.allowedTools)) {
      const granting = servers.filter(({ tools }) => tools.has(tool));
      steps += servers.length + granting.length * binding.scopes.length;
      if (steps > MAX_STEPS) return [{ path: PATH, before: "comparable", after: "too large to compare" }];
      const toolPath = `${path}.allowed_tools["${tool}"]`;
      if (granting.length === 0) {
        found.set(toolPath, { path: toolPath, before: "not allowed", after: "allowed" });
        continue;
      }
      for (const scope of new Set(binding.scopes)) {
        if (granting.some(({ scopes }) => scopes.has(scope))) continue;
        const scopePath = `${toolPath}.scopes["${scope}"]`;
        found.set(scopePath, { path: scopePath, before: "not granted", after: "granted" });
      }
    }
  }
  return [...found.values()];
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
