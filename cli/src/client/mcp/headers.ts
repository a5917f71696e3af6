import { encodedHeader, headersFor, type ParamHeader, paramHeadersOf } from "@depute/mcp";
import type { Message } from "./exchange.ts";

const VERSION = "io.modelcontextprotocol/protocolVersion";

/** For each method, the parameter whose value the header `Mcp-Name` repeats. (MCP 2026-07-28, Streamable HTTP) */
const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** Maximum number of tools for which the class stores the declared headers. */
const MAX_TOOLS = 10_000;

function members(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

/**
 * Returns the protocol revision that a message states; undefined for messages of revisions before 2026-07-28, which do
 * not state it.
 */
export function revisionIn({ params }: Message): string | undefined {
  const version = members(members(params)._meta)[VERSION];
  return typeof version === "string" ? version : undefined;
}

/**
 * Creates the HTTP headers that repeat parts of a message. Clients over stdio send no headers, so the relay creates
 * them.
 */
export class RepeatedHeaders {
  readonly #tools = new Map<string, readonly ParamHeader[]>();

  /** Stores the headers that the tools in a list declare. */
  note({ result }: Message): void {
    const { tools } = members(result);
    for (const tool of Array.isArray(tools) ? tools : []) {
      const { name, inputSchema } = members(tool);
      if (typeof name !== "string") continue;
      const declared = paramHeadersOf(inputSchema);
      if (declared.length === 0) this.#tools.delete(name);
      else if (this.#tools.size < MAX_TOOLS) this.#tools.set(name, declared);
    }
  }

  /** Returns the HTTP headers for a message of revision 2026-07-28 or later. */
  of({ method, params }: Message, revision: string): Record<string, string> {
    const given = members(params);
    const name = given[NAMED[String(method)] ?? ""];
    const declared = method === "tools/call" ? this.#tools.get(String(given.name)) : undefined;
    return {
      "mcp-protocol-version": revision,
      "mcp-method": String(method),
      ...(typeof name === "string" && { "mcp-name": encodedHeader(name) }),
      ...(declared && headersFor(declared, given.arguments)),
    };
  }
}
