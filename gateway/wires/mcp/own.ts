import { type ToolServer, toolServer } from "@depute/mcp";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { INSTRUCTIONS, ownTools } from "./documents.ts";
import { challenge, refusalForModel } from "./errors.ts";
import type { OwnClients } from "./methods.ts";

/** Serves Depute itself as an MCP server, so that every MCP client can delegate. */
export function ownServer(clients: OwnClients, { log, timers }: WireDeps): ToolServer<WireCall> {
  return toolServer({
    name: "depute",
    version: "0.1.0",
    instructions: INSTRUCTIONS,
    tools: ownTools(clients),
    refusalOf: (thrown, { requestId }) => refusalForModel(thrown, requestId),
    httpRefusalOf: challenge,
    timers,
    onError: (err) => log.debug({ err, path: "/mcp" }, "mcp"),
  });
}
