import type { ObservedCall, ObservedTaskRequest, ServerState } from "@depute/mcp";
import {
  Counter,
  DURATION_BUCKETS_S,
  Gauge,
  type HealthParts,
  Histogram,
  type Registry,
} from "@depute/service";

/**
 * The value of the label `tool` for calls of tools or methods that have no rule. All these calls share the value, so
 * that callers cannot create new values.
 */
const NO_RULE = "other";
/** The value of the label `tool` for requests on tasks that belong to no tool, such as a list. */
const NO_TOOL = "none";

/** Observes one server: its calls, and its state. */
export interface ServerObserver {
  onCall(call: ObservedCall): void;
  onTaskRequest(request: ObservedTaskRequest): void;
  onState(state: ServerState): void;
  /** Called when the configuration adds the server. The server counts as usable until it fails. */
  added(): void;
  /** Called when the configuration removes the server. */
  removed(): void;
}

/**
 * Registers the metrics of the servers behind the proxy.
 *
 * @param parts receives the health of each server under the name `mcp/{server}`
 */
export function mcpObservers(registry: Registry, parts: HealthParts): (server: string) => ServerObserver {
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
  const taskRequests = new Counter({
    name: "depute_mcp_task_requests_total",
    help: "Requests on tasks of servers behind the MCP proxy, by outcome.",
    labelNames: ["server", "tool", "method", "outcome"],
    registers,
  });
  const failures = new Counter({
    name: "depute_mcp_server_failures_total",
    help: "Crashes and failed starts of the servers behind the MCP proxy.",
    labelNames: ["server"],
    registers,
  });
  const up = new Gauge({
    name: "depute_mcp_server_up",
    help: "1 for a server behind the MCP proxy that is usable, 0 after a crash or a failed start until the next start.",
    labelNames: ["server"],
    registers,
  });
  return (server) => {
    const show = (isUp: boolean) => {
      up.set({ server }, isUp ? 1 : 0);
      parts.set(`mcp/${server}`, isUp);
    };
    return {
      onCall({ name, outcome, ms }) {
        const tool = name === "" ? NO_RULE : name;
        calls.inc({ server, tool, outcome });
        duration.observe({ server, tool }, ms / 1000);
      },
      onTaskRequest({ method, tool, outcome }) {
        taskRequests.inc({ server, tool: tool === "" ? NO_TOOL : tool, method, outcome });
      },
      onState(state) {
        if (state.kind === "failed") failures.inc({ server });
        show(state.kind === "up");
      },
      added: () => show(true),
      removed() {
        up.remove({ server });
        parts.set(`mcp/${server}`, undefined);
      },
    };
  };
}
