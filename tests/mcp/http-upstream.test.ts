import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { connect, type Grant, grant, holderFetch, member, type Revision, refusal, textOf } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** The requests that reached the server behind the proxy, unchanged. */
const received: { url: string; headers: Headers; body: string }[] = [];
let redirected = 0;
const elsewhere = createServer((_, response) => {
  redirected++;
  response.end("{}");
});

/** An HTTP server made with the SDK. `/away` redirects clients to another address. */
const http = createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks).toString();
  const headers = new Headers(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)] as [string, string]),
  );
  received.push({ url: request.url ?? "", headers, body });
  if (request.url === "/away") {
    response.writeHead(307, { location: `http://127.0.0.1:${portOf(elsewhere)}/` }).end();
    return;
  }
  const url = `http://${request.headers.host}/`;
  const answer = await handler.fetch(
    new Request(url, { method: request.method ?? "", headers, body: body === "" ? null : body }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(Buffer.from(await answer.arrayBuffer()));
});
const handler = createMcpHandler(() => {
  const server = new Server(
    { name: "notes", version: "1.0.0" },
    { capabilities: { tools: {}, resources: {} } },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: ["read", "write", "ask"].map((name) => ({ name, inputSchema: { type: "object" as const } })),
  }));
  server.setRequestHandler("tools/call", ({ params }, context) => {
    if (params.name === "ask" && context.mcpReq.inputResponses === undefined) {
      const wish =
        params.arguments?.of === "sampling"
          ? {
              method: "sampling/createMessage",
              params: { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 10 },
            }
          : {
              method: "elicitation/create",
              params: { mode: "form", message: "?", requestedSchema: { type: "object", properties: {} } },
            };
      return { resultType: "input_required", inputRequests: { wish } } as Json;
    }
    return {
      content: [
        { type: "text", text: `${params.name} ${JSON.stringify(context.mcpReq.inputResponses ?? null)}` },
      ],
    };
  });
  server.setRequestHandler("resources/list", () => ({
    resources: ["note://a/1", "note://b/1"].map((uri) => ({ uri, name: uri })),
  }));
  server.setRequestHandler("resources/read", ({ params }) => ({
    contents: [{ uri: params.uri, text: `content of ${params.uri}` }],
  }));
  return server;
});

const portOf = (server: typeof http) => (server.address() as AddressInfo).port;
const listen = (server: typeof http) =>
  new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

const rule = (action: string) => ({ namespace: "data", action, resource: "notes" });
const map = {
  tools: { read: rule("query"), write: rule("insert"), ask: rule("query") },
  methods: {
    "resources/read": { namespace: "data", action: "query", resource: { argument: "/uri", form: "uri" } },
  },
};
const sampling = {
  ...map,
  methods: { "sampling/createMessage": { namespace: "llm", action: "generate", resource: "client" } },
};
let platform: McpPlatform;
let aheadMs = 0;
/** A running clock that tests can also advance. */
const clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() + aheadMs };
beforeAll(async () => {
  await Promise.all([listen(http), listen(elsewhere)]);
  const url = `http://127.0.0.1:${portOf(http)}`;
  platform = await startPlatform(
    {
      notes: { http: { url: `${url}/`, headers: { "x-secret": "between the two" } }, map },
      asking: { http: { url: `${url}/` }, map: { ...map, passed: ["elicitation/create"] } },
      sampling: { http: { url: `${url}/` }, map: sampling },
      away: { http: { url: `${url}/away` }, map },
    },
    [],
    { clock },
  );
}, 60_000);
afterAll(async () => {
  await platform.stop();
  for (const server of [http, elsewhere]) {
    server.closeAllConnections();
    server.close();
  }
});

const clientOf = (holder: Grant, name = "notes", revision: Revision = "2026-07-28") =>
  connect(platform.mcp(name), revision, holderFetch(holder));
const reading = () =>
  grant(platform, [
    ["data", "query", "notes"],
    ["data", "query", "note/a/*"],
  ]);

describe.each<Revision>(["2026-07-28", "2025-11-25"])("a server over HTTP, client of %s", (revision) => {
  test("is listed and called within the token's capabilities", async () => {
    const client = await clientOf(await reading(), "notes", revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["read", "ask"]);
    expect(textOf(await client.callTool({ name: "read", arguments: {} }))).toBe("read null");
    expect((await refusal(client.callTool({ name: "write", arguments: {} }))).code).toBe(-32001);
    await client.close();
  });

  test("has its resources read within the token's capabilities", async () => {
    const client = await clientOf(await reading(), "notes", revision);
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["note://a/1"]);
    const { contents } = await client.readResource({ uri: "note://a/1" });
    expect((contents as Json)[0].text).toBe("content of note://a/1");
    for (const uri of [
      "note://b/1",
      "note://a/../b/1",
      "note://a/1/2",
      "note://a/1?x",
      "note:a/1",
      "file:///etc/passwd",
    ]) {
      expect([uri, (await refusal(client.readResource({ uri }))).code]).toEqual([uri, -32001]);
    }
    await client.close();
  });
});

test("gets no token and no credentials of a client, and gets its configured headers", async () => {
  const holder = await reading();
  received.length = 0;
  const client = await clientOf(holder);
  const args = { text: "hello" };
  await client.callTool({ name: "read", arguments: args });
  const params = { name: "read", arguments: args, _delegateos: member(holder, platform.mcp("notes"), args) };
  await client.callTool(params);
  await client.close();
  expect(received.filter(({ body }) => body.includes("tools/call"))).toHaveLength(2);
  for (const { headers, body } of received) {
    expect(headers.get("x-secret")).toBe("between the two");
    expect([headers.has("authorization"), headers.has("dpop")]).toEqual([false, false]);
    expect(body).not.toContain(holder.token);
    expect(body).not.toContain("_delegateos");
  }
});

test("a token on initialize is valid for the session's lists, and each call needs a proof", async () => {
  const holder = await reading();
  const url = platform.mcp("notes");
  const opening: typeof fetch = (input, init = {}) => {
    const body = typeof init.body === "string" ? JSON.parse(init.body) : {};
    if (body.method !== "initialize") return fetch(input, init);
    body.params._delegateos = member(holder, url, {});
    return fetch(input, { ...init, body: JSON.stringify(body) });
  };
  const client = await connect(url, "2025-11-25", opening);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["read", "ask"]);
  const call = client.callTool({ name: "read", arguments: {} });
  expect(await refusal(call)).toMatchObject({ data: { type: "proof_required" } });
  await client.close();
});

test("a server's requests to the client pass only if configured", async () => {
  const askedPaths: string[] = [];
  const clientFor = async (name: string) => {
    const holder = await reading();
    const client = await connect(platform.mcp(name), "2026-07-28", holderFetch(holder), {
      capabilities: { elicitation: { form: {} } },
    });
    client.setRequestHandler("elicitation/create", async ({ params }) => {
      askedPaths.push(params.message);
      return { action: "decline" };
    });
    return client;
  };
  const refused = await clientFor("notes");
  // The proxy does not declare a feature to the server if the proxy would refuse the feature's requests.
  expect(await refusal(refused.callTool({ name: "ask", arguments: {} }))).toMatchObject({ code: -32021 });
  expect(askedPaths).toEqual([]);
  const passed = await clientFor("asking");
  expect(textOf(await passed.callTool({ name: "ask", arguments: {} }))).toContain("decline");
  expect(askedPaths).toEqual(["?"]);
  await Promise.all([refused.close(), passed.close()]);
});

test("sampling in a call's answer needs its own capability in the token of the call", async () => {
  const askedPaths: string[] = [];
  const clientFor = async (holder: Grant) => {
    const client = await connect(platform.mcp("sampling"), "2026-07-28", holderFetch(holder), {
      capabilities: { sampling: {} },
    });
    client.setRequestHandler("sampling/createMessage", async () => {
      askedPaths.push("a sample");
      return { model: "test", role: "assistant", content: { type: "text", text: "a sample" } };
    });
    return client;
  };
  const sample = (client: Awaited<ReturnType<typeof clientFor>>) =>
    client.callTool({ name: "ask", arguments: { of: "sampling" } });
  const without = await clientFor(await reading());
  expect(await refusal(sample(without))).toMatchObject({
    code: -32001,
    data: { requested: { namespace: "llm", action: "generate", resource: "client" } },
  });
  expect(askedPaths).toEqual([]);
  await without.close();

  const rights = [
    ["data", "query", "notes"],
    ["llm", "generate", "client"],
  ] as const;
  const holder = await grant(platform, rights);
  received.length = 0;
  const allowed = await clientFor(holder);
  const answer = textOf(await sample(allowed));
  expect(askedPaths).toEqual(["a sample"]);
  // The server continues its call with the client's sample as the answer.
  expect(answer).toMatch(/^ask /);
  expect(JSON.parse(answer.slice("ask ".length))).toMatchObject({
    wish: { role: "assistant", content: { type: "text", text: "a sample" } },
  });
  // Two calls reach the server: the first ends with the request for a sample, the second carries the sample.
  expect(received.filter(({ body }) => body.includes("tools/call"))).toHaveLength(2);
  await allowed.close();
});

test("a redirect of the server is not followed", async () => {
  const holder = await reading();
  const answer = await holderFetch(holder)(platform.mcp("away"), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} }),
  });
  expect(await answer.json()).toMatchObject({
    id: 1,
    error: { code: -32603, data: { reason: "DEPENDENCY_UNAVAILABLE" } },
  });
  expect(redirected).toBe(0);
});

test("is called for an agent with a CAP manifest only within its mcp_bindings", async () => {
  const holder = await reading();
  const call = async () => {
    const client = await clientOf(holder);
    const outcome = await client
      .callTool({ name: "read", arguments: {} })
      .then(textOf, (thrown) => thrown.data.detail as string);
    await client.close();
    return outcome;
  };
  const register = (id: string, allowedTools: string[], principal: string) =>
    platform.clients.agents.registerAgent({
      requestId: crypto.randomUUID(),
      agent: {
        id,
        version: "1.0.0",
        principal,
        manifest: { id, systemPrompt: "", mcpBindings: [{ serverId: "notes", scopes: [], allowedTools }] },
      },
    });
  await register("writer", ["write"], holder.keypair.principal.id);
  expect(await call()).toBe("the agent's mcp_bindings do not allow the tool");
  const other = await reading();
  await register("reader", ["read"], other.keypair.principal.id);
  const client = await clientOf(other);
  expect(textOf(await client.callTool({ name: "read", arguments: {} }))).toBe("read null");
  await client.close();
  await introduce(platform, "plain");
});

describe("the bounds of a key", () => {
  const register = (id: string, principal: string, allowedTools?: string[]) =>
    platform.clients.agents.registerAgent({
      requestId: crypto.randomUUID(),
      agent: {
        id,
        principal,
        ...(allowedTools && {
          manifest: { id, mcpBindings: [{ serverId: "notes", scopes: [], allowedTools }] },
        }),
      },
    });
  const outcomes = async (holder: Grant) => {
    const client = await clientOf(holder);
    const read = () =>
      client.callTool({ name: "read", arguments: {} }).then(textOf, (thrown) => thrown.data.detail as string);
    return { read, close: () => client.close() };
  };
  const DENIED = "the agent's mcp_bindings do not allow the tool";

  test("a narrower manifest applies to each call that begins a second after its registration", async () => {
    const holder = await reading();
    const key = holder.keypair.principal.id;
    await register("narrowed", key, ["read"]);
    const { read, close } = await outcomes(holder);
    expect(await read()).toBe("read null");
    await register("narrowed", key, []);
    aheadMs += 1000;
    expect(await read()).toBe(DENIED);
    await close();
  });

  test.each<[string, (id: string) => Promise<unknown>]>([
    ["removal", (id) => platform.clients.agents.deregisterAgent({ agentId: id })],
    ["deprecation", (id) => platform.clients.agents.setAgentStatus({ agentId: id, status: 3 })],
    ["twenty agents without a manifest before it", async () => {}],
  ])("apply also after %s of the agent", async (name, change) => {
    const holder = await reading();
    const id = `z-${name.length}`;
    await register(id, holder.keypair.principal.id, ["write"]);
    for (let i = 0; i < 20; i++) await register(`a-${name.length}-${i}`, holder.keypair.principal.id);
    await change(id);
    const { read, close } = await outcomes(holder);
    expect(await read()).toBe(DENIED);
    await close();
  });
});

test.each([
  ["a batch", [{ jsonrpc: "2.0", id: 1, method: "ping" }], {}, 400],
  ["malformed JSON", "{", {}, 400],
  [
    "a page of another site",
    { jsonrpc: "2.0", id: 1, method: "ping" },
    { origin: "https://elsewhere.example" },
    403,
  ],
])("%s is not answered", async (_, body, more, status) => {
  const headers = { accept: "application/json, text/event-stream", ...more };
  for (const path of ["/mcp/notes", "/mcp"]) {
    expect([path, (await platform.post(path, body, headers)).status]).toEqual([path, status]);
  }
});

test("a page of the platform's own is answered", async () => {
  const headers = { accept: "application/json, text/event-stream", origin: new URL(platform.url).origin };
  const answer = await platform.post("/mcp/notes", { jsonrpc: "2.0", id: 1, method: "ping" }, headers);
  expect(answer.status).toBe(200);
});
