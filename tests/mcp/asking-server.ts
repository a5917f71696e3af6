import { createInterface } from "node:readline";

/**
 * An MCP server of 2025-11-25 over stdio, without an SDK. The tool `ask` asks its client for a name, after `after_ms`
 * milliseconds. Its result has the id of the process, the capabilities of the client, and the answer or its error.
 */

let declared: unknown;
let asked = 0;
const answers = new Map<unknown, (message: Record<string, unknown>) => void>();
const write = (message: object) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

async function ask(afterMs: number): Promise<unknown> {
  await new Promise((resolve) => setTimeout(resolve, afterMs));
  if (Object.keys(declared as object).length === 0) return "not asked";
  const id = `question-${++asked}`;
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
  write({ id, method: "elicitation/create", params: { message: "name?", requestedSchema } });
  const { result, error } = await new Promise<Record<string, unknown>>((resolve) => answers.set(id, resolve));
  return result ?? error;
}

for await (const line of createInterface({ input: process.stdin })) {
  const message = JSON.parse(line);
  const { id, method, params } = message;
  if (method === undefined) answers.get(id)?.(message);
  if (method === "initialize") {
    declared = params.capabilities;
    const serverInfo = { name: "asking", version: "1" };
    write({ id, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } });
  } else if (method === "tools/list") {
    write({ id, result: { tools: [{ name: "ask", inputSchema: { type: "object" } }] } });
  } else if (method === "tools/call") {
    void ask(params.arguments.after_ms ?? 0).then((answer) => {
      const text = JSON.stringify({ pid: process.pid, declared, answer });
      write({ id, result: { content: [{ type: "text", text }] } });
    });
  } else if (id !== undefined && method !== undefined) {
    write({ id, error: { code: -32601, message: "Method not found" } });
  }
}
