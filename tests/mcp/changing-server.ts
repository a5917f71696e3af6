/**
 * An MCP server over stdio that changes its definitions when a file appears: `changing-server.ts ERA FILE [announces]`.
 * ERA is `legacy` for the published SDK 1.x, which supports 2025-11-25, or `modern` for the SDK of 2026-07-28.
 */
import { existsSync, watchFile } from "node:fs";
import { changingServer } from "./changing.ts";
import { earlierSdk } from "./earlier-sdk.ts";

/** SDK 1.x identifies a request by its schema. This table contains the schema's name for each method. */
const SCHEMAS: Readonly<Record<string, string>> = {
  "tools/list": "ListToolsRequestSchema",
  "tools/call": "CallToolRequestSchema",
  "prompts/list": "ListPromptsRequestSchema",
  "prompts/get": "GetPromptRequestSchema",
  "completion/complete": "CompleteRequestSchema",
};

const [era = "", file = "", announces] = process.argv.slice(2);
const makeServer = (Server: unknown) => {
  const { server, announce } = changingServer(Server, () => existsSync(file), announces === "announces");
  if (announces === "announces") watchFile(file, { interval: 20 }, announce);
  return server;
};

if (era === "legacy") {
  const { Server } = await earlierSdk("server/index");
  const { StdioServerTransport } = await earlierSdk("server/stdio");
  const types = await earlierSdk("types");
  class LegacyServer extends Server {
    setRequestHandler(method: string, handle: unknown) {
      // SDK 1.x registers a handler by schema; the newer SDK registers it by method.
      super.setRequestHandler(types[SCHEMAS[method] ?? ""] ?? method, handle);
    }
  }
  await makeServer(LegacyServer).connect(new StdioServerTransport());
} else {
  const { Server } = await import("@modelcontextprotocol/server");
  const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
  serveStdio(() => makeServer(Server));
}
