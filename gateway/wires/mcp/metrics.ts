import type { ProxyOptions } from "@depute/mcp";
import { Counter, DURATION_BUCKETS_S, Histogram, type Registry } from "@depute/service";

/** The label of calls whose tool or method has no rule in the map, so that callers cannot make new labels. */
const NO_RULE = "other";

/** Registers the metrics of calls through the proxy. Returns the observer of one server's calls. */
export function mcpMetrics(registry: Registry): (server: string) => NonNullable<ProxyOptions["onCall"]> {
  const registers = [registry];
  const calls = new Counter({
    name: "depute_mcp_calls_total",
    help: "Calls of tools and methods through the MCP proxy, by outcome.",
    labelNames: ["server", "tool", "outcome"],
    registers,
  });
  const duration = new Histogram({
    name: "depute_mcp_call_duration_seconds",
    help: "Time from a call's arrival at the MCP proxy to its answer.",
    labelNames: ["server", "tool"],
    buckets: DURATION_BUCKETS_S,
    registers,
  });
  return (server) =>
    ({ name, outcome, ms }) => {
      const tool = name === "" ? NO_RULE : name;
      calls.inc({ server, tool, outcome });
      duration.observe({ server, tool }, ms / 1000);
    };
}
