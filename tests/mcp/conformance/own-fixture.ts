import { systemClock, systemTimers } from "@depute/core";
import { type OwnTool, toolServer } from "@depute/mcp";
import type { McpServer, RequestStateCodec, ServerContext } from "@modelcontextprotocol/server";
import type { Json } from "../../gateway/platform.ts";
import { addPrompts, addResources, codec } from "./fixture-server.ts";
import { addTools } from "./fixture-tools.ts";
import { serveWeb } from "./serve-web.ts";

type Handler = (first: Json, second: Json) => Json;

/** The fixtures of the suite, as they are registered. */
function collected() {
  const tools: { name: string; config: Json; handler: Handler }[] = [];
  const prompts = new Map<string, { config: Json; handler: Handler }>();
  const resources: { name: string; uri: Json; config: Json; handler: Handler }[] = [];
  const collector = {
    registerTool: (name: string, config: Json, handler: Handler) => tools.push({ name, config, handler }),
    registerPrompt: (name: string, config: Json, handler: Handler) => prompts.set(name, { config, handler }),
    registerResource: (name: string, uri: Json, config: Json, handler: Handler) =>
      resources.push({ name, uri, config, handler }),
  } as unknown as McpServer;
  const announce = { toolsChanged() {}, promptsChanged() {}, resourceChanged() {} };
  addTools(collector, codec as never, announce);
  addPrompts(collector);
  addResources(collector);
  return { tools, prompts, resources };
}

const schemaOf = (standard: Json): Json =>
  standard["~standard"].jsonSchema.input({ target: "draft-2020-12" });

/** Gives a fixture the state of its last round, as the SDK's McpServer does. */
async function withState(context: ServerContext): Promise<Json> {
  const state = context.mcpReq.requestState<string>();
  const verified =
    state === undefined ? undefined : await (codec as RequestStateCodec).verify(state, context);
  return { ...context, mcpReq: { ...context.mcpReq, requestState: () => verified } };
}

/** Starts the program of `/mcp` with the fixtures of the conformance suite in place of Depute's own tools. */
export async function startOwnFixture(): Promise<{ url: string; stop(): void }> {
  const { tools, prompts, resources } = collected();
  const none = async () => undefined;
  const server = toolServer<undefined>({
    name: "depute",
    version: "0",
    instructions: "Call the tools of the suite.",
    tools: tools.map(
      ({ name, config, handler }): OwnTool<undefined> => ({
        name,
        description: config.description,
        inputSchema: schemaOf(config.inputSchema) as never,
        isReadOnly: false,
        run: async () => ({}),
        respond: async (args, context) => handler(args, await withState(context)),
      }),
    ),
    resources: { templates: [], list: async () => ({ resources: [], nextCursor: "" }), read: none },
    prompts: [],
    tasks: {
      get: none,
      answer: none,
      cancel: none,
      ended: none,
      list: async () => ({ tasks: [], nextCursor: "" }),
      listen: async () => ({ taskIds: [], follow: async () => {} }),
    },
    refusalOf: (thrown) => ({ detail: String(thrown) }),
    httpRefusalOf: () => undefined,
    callerOf: () => "",
    clock: systemClock,
    timers: systemTimers,
    onError: () => {},
    extend(own) {
      own.registerCapabilities({ completions: {}, logging: {}, resources: { subscribe: true } });
      own.setRequestHandler("prompts/list", () => ({
        prompts: [...prompts].map(([name, { config }]) => ({
          name,
          description: config.description,
          arguments: argumentsOf(config),
        })),
      }));
      own.setRequestHandler("prompts/get", async ({ params }, context) => {
        const { config, handler } = prompts.get(params.name) ?? {};
        const state = await withState(context);
        return config?.argsSchema === undefined
          ? handler?.(state, {})
          : handler?.(params.arguments ?? {}, state);
      });
      const fixed = resources.filter(({ uri }) => typeof uri === "string");
      own.setRequestHandler("resources/list", () => ({
        resources: fixed.map(({ name, uri, config }) => ({ name, uri, ...config })),
      }));
      const templates = resources.filter(({ uri }) => typeof uri !== "string");
      own.setRequestHandler("resources/templates/list", () => ({
        resourceTemplates: templates.map(({ name, uri, config }) => ({
          name,
          uriTemplate: String(uri.uriTemplate),
          ...config,
        })),
      }));
      own.setRequestHandler("resources/read", ({ params: { uri } }) => {
        const [, id] = /^test:\/\/template\/(.*)\/data$/.exec(uri) ?? [];
        const found = id === undefined ? fixed.find((one) => one.uri === uri) : templates[0];
        return found?.handler(new URL(uri), { id });
      });
      own.setRequestHandler("completion/complete", () => ({
        completion: { values: ["paris", "park"], total: 2, hasMore: false },
      }));
      own.setRequestHandler("resources/subscribe", () => ({}));
      own.setRequestHandler("resources/unsubscribe", () => ({}));
    },
  });
  const { url, stop } = await serveWeb(async (request) => {
    const body = request.method === "POST" ? await request.json() : undefined;
    const head = new Request(request.url, {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
    });
    return server.answer(body === undefined ? request : head, body, undefined);
  });
  return {
    url,
    stop() {
      stop();
      void server.close();
    },
  };
}

function argumentsOf({ argsSchema }: Json): Json[] {
  const names = argsSchema === undefined ? [] : Object.keys(schemaOf(argsSchema).properties);
  return names.map((name) => ({ name, required: true }));
}
