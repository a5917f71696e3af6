import type { JsonObject } from "@bufbuild/protobuf";
import type { Timers } from "@depute/core";
import { createMcpHandler, Server, type ServerContext, type Tool } from "@modelcontextprotocol/server";
import { held } from "./held-answer.ts";
import { INTERNAL_ERROR, INVALID_PARAMS, Refusal } from "./rules/refusal.ts";

const JSON_TYPE = "application/json";

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

/** A resource that a list shows. (MCP, Resources) */
export interface OwnResource {
  readonly uri: string;
  readonly name: string;
  readonly description?: string;
  readonly mimeType: string;
}

/** The resources that this process itself serves. */
export interface OwnResources<Call> {
  /** URI templates of all resources. (RFC 6570) */
  readonly templates: readonly {
    readonly uriTemplate: string;
    readonly name: string;
    readonly description: string;
    readonly mimeType: string;
  }[];
  /** Lists the resources that the caller may read, the newest first. */
  list(call: Call, cursor: string): Promise<{ resources: OwnResource[]; nextCursor: string }>;
  /**
   * Reads a resource.
   *
   * @returns undefined for a URI without a resource that the caller may see
   */
  read(uri: string, call: Call): Promise<JsonObject | undefined>;
}

/** A prompt that this process itself serves. (MCP, Prompts) */
export interface OwnPrompt {
  readonly name: string;
  readonly description: string;
  readonly arguments: readonly {
    readonly name: string;
    readonly description: string;
    readonly required: boolean;
  }[];
  /** Returns the text for the model. All required arguments are present. */
  text(args: Readonly<Record<string, string>>): string;
}

export interface ToolServerOptions<Call> {
  readonly name: string;
  readonly version: string;
  readonly instructions: string;
  readonly tools: readonly OwnTool<Call>[];
  readonly resources: OwnResources<Call>;
  readonly prompts: readonly OwnPrompt[];
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
      const capabilities = { tools: {}, resources: {}, prompts: {} };
      const server = new Server({ name, version }, { capabilities, instructions });
      server.onerror = onError;
      serveResources(server, options);
      servePrompts(server, options.prompts);
      server.setRequestHandler("tools/list", () => ({ tools: listed }));
      server.setRequestHandler("tools/call", async ({ params }, { http, mcpReq }) => {
        const tool = tools.get(params.name);
        if (tool === undefined)
          throw new Refusal(INVALID_PARAMS, "no such tool: list the tools for their names", {});
        const exchange = exchangeOf<Call>(http);
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

function exchangeOf<Call>(http: ServerContext["http"]): Exchange<Call> {
  return http?.authInfo?.extra?.[CALL] as Exchange<Call>;
}

function serveResources<Call>(server: Server, options: ToolServerOptions<Call>): void {
  const { resources } = options;
  /** Runs a request on resources. A refusal of the platform becomes the error of the call. */
  const refused = async <T>(call: Call, run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (thrown) {
      if (thrown instanceof Refusal) throw thrown;
      throw new Refusal(INTERNAL_ERROR, "the resource cannot be read", options.refusalOf(thrown, call));
    }
  };
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [...resources.templates],
  }));
  server.setRequestHandler("resources/list", async ({ params }, { http }) => {
    const { call } = exchangeOf<Call>(http);
    const { resources: listed, nextCursor } = await refused(call, () =>
      resources.list(call, params?.cursor ?? ""),
    );
    return { resources: listed, ...(nextCursor === "" ? {} : { nextCursor }) };
  });
  server.setRequestHandler("resources/read", async ({ params: { uri } }, { http }) => {
    const { call } = exchangeOf<Call>(http);
    const document = await refused(call, () => resources.read(uri, call));
    if (document === undefined)
      throw new Refusal(INVALID_PARAMS, "no such resource: list the resources for their addresses", { uri });
    return { contents: [{ uri, mimeType: JSON_TYPE, text: JSON.stringify(document) }] };
  });
}

function servePrompts(server: Server, prompts: readonly OwnPrompt[]): void {
  const byName = new Map(prompts.map((prompt) => [prompt.name, prompt]));
  server.setRequestHandler("prompts/list", () => ({
    prompts: prompts.map(({ name, description, arguments: args }) => ({
      name,
      description,
      arguments: [...args],
    })),
  }));
  server.setRequestHandler("prompts/get", ({ params }) => {
    const prompt = byName.get(params.name);
    if (prompt === undefined)
      throw new Refusal(INVALID_PARAMS, "no such prompt: list the prompts for their names", {});
    const args = params.arguments ?? {};
    const missing = prompt.arguments.find(({ name, required }) => required && args[name] === undefined);
    if (missing !== undefined)
      throw new Refusal(INVALID_PARAMS, `the argument ${missing.name} is missing: give it`, {
        argument: missing.name,
      });
    const content = { type: "text" as const, text: prompt.text(args) };
    return { description: prompt.description, messages: [{ role: "user" as const, content }] };
  });
}

function isToolCall(body: unknown): boolean {
  return typeof body === "object" && body !== null && "method" in body && body.method === "tools/call";
}
