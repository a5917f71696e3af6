import { unknownPath } from "@depute/service";
import { JSON_TYPES, type WebRoute, type Wire } from "../../edge/route.ts";
import { EVENT_STREAM } from "../../edge/wire-call.ts";
import { mcpErrors } from "./errors.ts";
import type { McpHandlers, McpHandlersOptions } from "./handlers.ts";
import { metadataRoutes } from "./login.ts";
import { MESSAGE } from "./names.ts";

/** Media types of MCP's answers: one JSON document, or a stream of events. (MCP, Streamable HTTP) */
const TYPES = [...JSON_TYPES, EVENT_STREAM];

export interface McpWire extends Wire {
  close(): Promise<void>;
}

/**
 * Serves the MCP servers behind the proxy, each at /mcp/{server}, and Depute's own tools at /mcp. If no servers are
 * configured, the gateway loads MCP's modules only at the first request, because they need about 20 MB of memory.
 *
 * @throws SettingsError if the configuration file cannot be used
 */
export async function mcpWire(options: McpHandlersOptions): Promise<McpWire> {
  let started: McpHandlers | undefined;
  let starting: Promise<McpHandlers> | undefined;
  const handlers = () => {
    starting ??= import("./handlers.ts").then(({ startMcp }) => {
      started = startMcp(options);
      return started;
    });
    return starting;
  };
  const hasServers = options.configPath !== "";
  if (hasServers) await handlers();
  const served = () => ["/mcp", ...(started?.names ?? []).map((name) => `/mcp/${name}`)];
  const message = (path: string): WebRoute => ({
    kind: "web",
    methods: ["POST"],
    path,
    answer: async (wireRequest) =>
      (await handlers()).answerMessage(wireRequest.parameters.server ?? "", wireRequest),
  });
  return {
    name: "mcp",
    claims: ["/mcp"],
    toError: mcpErrors(served),
    routes: [
      ...metadataRoutes((name) => started?.needsLogin(name) === true, options.deps),
      {
        kind: "web",
        methods: ["POST", "GET", "DELETE"],
        path: "/mcp",
        gives: TYPES,
        answer: async (wireRequest) => (await handlers()).answerOwn(wireRequest),
      },
      message(`/mcp/${MESSAGE}`),
      message(`/mcp/${MESSAGE}/{server}`),
      {
        kind: "web",
        methods: ["POST", "GET", "DELETE"],
        path: "/mcp/{server}",
        gives: TYPES,
        answer: async (wireRequest) => {
          if (!hasServers) throw unknownPath(new URL(wireRequest.web.url).pathname);
          return (await handlers()).answerServer(wireRequest.parameters.server ?? "", wireRequest);
        },
      },
    ],
    close: async () => {
      await (await starting)?.close();
    },
  };
}
