import { type ToolServer, toolServer } from "@depute/mcp";
import type { WireCall } from "../../edge/wire-call.ts";
import type { WireDeps } from "../../edge/wire-deps.ts";
import { INSTRUCTIONS, ownTools } from "./documents.ts";
import { challenge, refusalForModel } from "./errors.ts";
import type { OwnClients } from "./methods.ts";
import { OWN_PROMPTS } from "./prompts.ts";
import { ownResources } from "./resources.ts";
import { ownTasks } from "./tasks.ts";

/** The address of Depute's own tools. */
const PATH = "/mcp";

/** Serves Depute's own tools as an MCP server, so that every MCP client can delegate work. */
export function ownServer(clients: OwnClients, deps: WireDeps): ToolServer<WireCall> {
  const { clock, log, timers } = deps;
  return toolServer({
    name: "depute",
    version: "0.1.0",
    instructions: INSTRUCTIONS,
    tools: ownTools(clients, deps),
    resources: ownResources(clients),
    prompts: OWN_PROMPTS,
    tasks: ownTasks(clients, timers),
    refusalOf: (thrown, { requestId }) => refusalForModel(thrown, requestId),
    httpRefusalOf: (thrown, id, call) => challenge(PATH, thrown, id, call, deps),
    callerOf: (call) => call.credentialsDigest,
    clock,
    timers,
    onError: (err) => log.debug({ err, path: PATH }, "mcp"),
  });
}
