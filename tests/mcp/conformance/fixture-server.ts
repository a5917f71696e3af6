import { randomUUID } from "node:crypto";
import {
  createMcpHandler,
  createRequestStateCodec,
  type EventStore,
  fromJsonSchema,
  isLegacyRequest,
  type JSONRPCMessage,
  McpServer,
  ResourceTemplate,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Json } from "../../gateway/platform.ts";
import { type Announcements, addTools, PNG } from "./fixture-tools.ts";
import { serveWeb } from "./serve-web.ts";

const WATCHED = "test://watched-resource";
const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  completions: {},
  logging: {},
};
export const codec = createRequestStateCodec<Json>({ key: randomUUID() });

/** Makes a server with everything that the conformance suite looks for. */
function makeServer(announce: Announcements): McpServer {
  const server = new McpServer(
    { name: "conformance-fixture", version: "3.2.1", title: "The fixture" },
    {
      capabilities: CAPABILITIES,
      instructions: "Call the tools of the suite.",
      requestState: { verify: codec.verify },
    },
  );
  addTools(server, codec as never, announce);
  addResources(server);
  addPrompts(server);
  server.server.setRequestHandler("completion/complete", () => ({
    completion: { values: ["paris", "park"], total: 2, hasMore: false },
  }));
  server.server.setRequestHandler("resources/subscribe", () => ({}));
  server.server.setRequestHandler("resources/unsubscribe", () => ({}));
  return server;
}

export function addResources(server: McpServer): void {
  const add = (name: string, uri: string, mimeType: string, content: Json) =>
    server.registerResource(name, uri, { mimeType }, () => ({ contents: [{ uri, mimeType, ...content }] }));
  add("static-text", "test://static-text", "text/plain", { text: "a static text" });
  add("static-binary", "test://static-binary", "image/png", { blob: PNG });
  add("watched", WATCHED, "text/plain", { text: "a watched text" });
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, { mimeType: "application/json" }, ({ href }, { id }) => ({
    contents: [{ uri: href, mimeType: "application/json", text: JSON.stringify({ id }) }],
  }));
}

export function addPrompts(server: McpServer): void {
  const add = (name: string, names: readonly string[], run: (args: Json, context: Json) => Json) => {
    const properties = Object.fromEntries(names.map((one) => [one, { type: "string" }]));
    const argsSchema = fromJsonSchema({ type: "object", properties, required: [...names] } as never);
    const config = { description: name, ...(names.length === 0 ? {} : { argsSchema }) };
    const handle = names.length === 0 ? (context: Json) => run({}, context) : run;
    server.registerPrompt(name, config as never, handle as never);
  };
  const message = (content: Json) => ({ messages: [{ role: "user", content }] });
  const text = (value: string) => message({ type: "text", text: value });
  add("test_simple_prompt", [], () => text("This is a simple prompt for testing."));
  add("test_prompt_with_arguments", ["arg1", "arg2"], ({ arg1, arg2 }) =>
    text(`arg1='${arg1}', arg2='${arg2}'`),
  );
  add("test_prompt_with_embedded_resource", ["resourceUri"], ({ resourceUri: uri }) =>
    message({ type: "resource", resource: { uri, mimeType: "text/plain", text: "embedded" } }),
  );
  add("test_prompt_with_image", [], () => message({ type: "image", data: PNG, mimeType: "image/png" }));
  add("test_input_required_result_prompt", [], (_, { mcpReq }) =>
    mcpReq.inputResponses?.user_context === undefined
      ? {
          resultType: "input_required",
          inputRequests: {
            user_context: {
              method: "elicitation/create",
              params: {
                message: "What context?",
                requestedSchema: { type: "object", properties: { context: { type: "string" } } },
              },
            },
          },
        }
      : text("with context"),
  );
}

/** Makes a store for the events of all streams of an MCP session, for clients that reconnect. */
function eventStore(): EventStore {
  const events: { id: string; stream: string; message: JSONRPCMessage }[] = [];
  return {
    async storeEvent(stream, message) {
      const id = `${stream}/${events.length}`;
      events.push({ id, stream, message });
      return id;
    },
    async replayEventsAfter(last, { send }) {
      const at = events.findIndex(({ id }) => id === last);
      const { stream = "" } = events[at] ?? {};
      for (const event of events.slice(at + 1)) {
        if (event.stream === stream && "jsonrpc" in event.message) await send(event.id, event.message);
      }
      return stream;
    },
  };
}

/** Starts the suite's server over HTTP, for clients of all three revisions. */
export async function startFixture(): Promise<{ url: string; stop(): void }> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const legacyServers = new Set<McpServer>();
  const announce = {
    toolsChanged: () => modern.notify.toolsChanged(),
    promptsChanged: () => modern.notify.promptsChanged(),
    resourceChanged: (uri: string) => {
      modern.notify.resourceUpdated(uri);
      for (const { server } of legacyServers) server.sendResourceUpdated({ uri }).catch(() => {});
    },
  };
  const modern = createMcpHandler(() => makeServer(announce), { legacy: "reject" });
  async function legacy(request: Request): Promise<Response> {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return new Response(null, { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: eventStore(),
      retryInterval: 100,
      onsessioninitialized: (opened) => void sessions.set(opened, transport),
      onsessionclosed: (closed) => void sessions.delete(closed),
    });
    const server = makeServer(announce);
    legacyServers.add(server);
    await server.connect(transport);
    return transport.handleRequest(request);
  }
  async function answer(request: Request): Promise<Response> {
    return (await isLegacyRequest(request)) ? legacy(request) : modern.fetch(request);
  }
  const { url, stop } = await serveWeb(answer);
  return {
    url,
    stop() {
      stop();
      void modern.close();
    },
  };
}
