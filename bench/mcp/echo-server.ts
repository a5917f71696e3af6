import { Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";

/** An MCP server over stdio that answers at once. With the argument `announces` it declares that it announces changes. */

const DEFINITION = { name: "echo", description: "gives back", inputSchema: { type: "object" as const } };
const announces = process.argv.includes("announces");

serveStdio(() => {
  const tools = announces ? { listChanged: true } : {};
  const server = new Server({ name: "bench", version: "1.0.0" }, { capabilities: { tools } });
  server.setRequestHandler("tools/list", () => ({ tools: [DEFINITION] }));
  server.setRequestHandler("tools/call", ({ params }) => ({
    content: [{ type: "text", text: JSON.stringify(params.arguments) }],
  }));
  return server;
});
