import type { JsonObject } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import { createMcpHandler, Server, type Tool } from "@modelcontextprotocol/server";
import { held } from "./held-answer.ts";
import { INVALID_PARAMS, Refusal } from "./rules/refusal.ts";

/** A tool that is served rather than proxied. `Call` is what the request came with. */
export interface OwnTool<Call> {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments; for who calls, since the tool checks them itself. */
  readonly inputSchema: Tool["inputSchema"];
  /** Whether it changes nothing. */
  readonly isReadOnly: boolean;
  run(args: Readonly<Record<string, unknown>>, call: Call): Promise<JsonObject>;
}

export interface ToolServerOptions<Call> {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  readonly tools: readonly OwnTool<Call>[];
  /** What a model is told of whatever a tool threw. */
  refusalOf(thrown: unknown, call: Call): JsonObject;
  /** The HTTP answer to whatever a tool threw, where the client has to act before any model reads it; undefined otherwise. */
  httpRefusalOf(thrown: unknown, id: unknown, call: Call): Response | undefined;
  readonly timers: Timers;
  readonly onError: (error: Error) => void;
}

export interface ToolServer<Call> {
  answer(request: Request, body: unknown, call: Call): Promise<Response>;
  close(): Promise<void>;
}

/** The name under which the SDK carries what a request came with. */
const CALL = "depute.dev/call";

/** A request, and how its tool was refused. */
interface Exchange<Call> {
  readonly call: Call;
  refusal?: Response;
}

/** An MCP server of these tools over Streamable HTTP, without sessions, in the present revision and those before. */
export function toolServer<Call>(options: ToolServerOptions<Call>): ToolServer<Call> {
  const { name, version, instructions, onError } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  const listed = options.tools.map(({ name, description, inputSchema, isReadOnly }) => ({
    name,
    description,
    inputSchema,
    annotations: { readOnlyHint: isReadOnly },
  }));
  const handler = createMcpHandler(
    () => {
      const server = new Server({ name, version }, { capabilities: { tools: {} }, instructions });
      server.onerror = onError;
      server.setRequestHandler("tools/list", () => ({ tools: listed }));
      server.setRequestHandler("tools/call", async ({ params }, { http, mcpReq }) => {
        const tool = tools.get(params.name);
        if (tool === undefined) throw new Refusal(INVALID_PARAMS, "there is no such tool", {});
        const exchange = http?.authInfo?.extra?.[CALL] as Exchange<Call>;
        const { call } = exchange;
        try {
          const result = await tool.run(params.arguments ?? {}, call);
          return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
        } catch (thrown) {
          const refused = options.httpRefusalOf(thrown, mcpReq.id, call);
          if (refused !== undefined) exchange.refusal = refused;
          // As a result rather than an error, so that a model reads it and can do better (MCP, "Error Handling").
          const refusal = options.refusalOf(thrown, call);
          return {
            isError: true,
            content: [{ type: "text", text: JSON.stringify(refusal) }],
            structuredContent: refusal,
          };
        }
      });
      return server;
    },
    { onerror: onError },
  );
  return {
    async answer(request, body, call) {
      const exchange: Exchange<Call> = { call };
      const answer = await handler.fetch(request, {
        ...(body === undefined ? {} : { parsedBody: body }),
        authInfo: { token: "", clientId: "", scopes: [], extra: { [CALL]: exchange } },
      });
      return isToolCall(body) ? held(answer, () => exchange.refusal, options.timers) : answer;
    },
    close: () => handler.close(),
  };
}

function isToolCall(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "tools/call";
}
