import type { JsonObject } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import { createMcpHandler, Server, type Tool } from "@modelcontextprotocol/server";
import { held } from "./held-answer.ts";
import { INVALID_PARAMS, Refusal } from "./rules/refusal.ts";

/** A tool that this process itself implements. `Call` is the type of the request's context. */
export interface OwnTool<Call> {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, for callers only, because the tool itself validates its arguments. */
  readonly inputSchema: Tool["inputSchema"];
  /** Whether the tool only reads. */
  readonly isReadOnly: boolean;
  run(args: Readonly<Record<string, unknown>>, call: Call): Promise<JsonObject>;
}

export interface ToolServerOptions<Call> {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  readonly tools: readonly OwnTool<Call>[];
  /** Returns the refusal that the model reads after a tool has thrown. */
  refusalOf(thrown: unknown, call: Call): JsonObject;
  /** Returns the HTTP answer after a tool has thrown, if the client must act before the model; undefined otherwise. */
  httpRefusalOf(thrown: unknown, id: unknown, call: Call): Response | undefined;
  readonly timers: Timers;
  readonly onError: (error: Error) => void;
}

export interface ToolServer<Call> {
  answer(request: Request, body: unknown, call: Call): Promise<Response>;
  close(): Promise<void>;
}

/** The key under which the SDK stores the request's context. */
const CALL = "depute.dev/call";

/** A request, and the refusal by its tool if there was one. */
interface Exchange<Call> {
  readonly call: Call;
  refusal?: Response;
}

/**
 * Creates an MCP server of these tools over Streamable HTTP, without sessions, for the current revision and earlier
 * ones.
 */
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
        if (tool === undefined)
          throw new Refusal(INVALID_PARAMS, "no such tool: list the tools for their names", {});
        const exchange = http?.authInfo?.extra?.[CALL] as Exchange<Call>;
        const { call } = exchange;
        try {
          const result = await tool.run(params.arguments ?? {}, call);
          return { content: [{ type: "text", text: JSON.stringify(result) }], structuredContent: result };
        } catch (thrown) {
          const refused = options.httpRefusalOf(thrown, mcpReq.id, call);
          if (refused !== undefined) exchange.refusal = refused;
          // The refusal is sent as a result instead of an error, so that a model can read it and correct the call (MCP,
          // "Error Handling").
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
