import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { grantAll, type StartedFixture, startBehindDepute } from "./conformance/behind-depute.ts";
import type { Grant } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";
import { MAIN } from "./proxy-process.ts";
import { EXTENSION } from "./task-server.ts";

/** This file tests `depute mcp` as a separate process that reads and writes lines of JSON. The client uses no SDK. */

const REVISION = "2026-07-28";
const folder = mkdtempSync(join(tmpdir(), "depute-mcp-relay-"));

let started: StartedFixture;
let platform: McpPlatform;
let holder: Grant;
let files: readonly string[];
beforeAll(async () => {
  started = await startBehindDepute();
  platform = started.platform;
  holder = await grantAll(platform);
  files = filesOf(holder);
  await introduce(platform, "asker");
  platform.work("asker", async (_, { ask }) => ({ output: await ask("which?") }));
}, 60_000);
afterAll(async () => {
  await started.stop();
  rmSync(folder, { recursive: true });
});

/** Writes the token and the key of a holder to files, and returns the flags that name them. */
function filesOf({ token, keypair }: Grant): readonly string[] {
  const at = (name: string) => join(folder, `${name}-${keypair.principal.id}`);
  writeFileSync(at("token"), token);
  writeFileSync(at("key"), Buffer.from(keypair.privateKey).toString("base64url"), { mode: 0o600 });
  return ["--token-file", at("token"), "--key-file", at("key")];
}

const children = new Set<ReturnType<typeof spawn>>();
afterEach(() => {
  for (const child of children) child.kill();
  children.clear();
});

/** Starts the command. `next` returns the next message that the command writes. */
function start(words: readonly string[], server = platform.url, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [MAIN, "mcp", ...words, "--server", server], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, DEPUTE_CONFIG: join(folder, "config.json"), ...env },
  });
  children.add(child);
  let errors = "";
  child.stderr.on("data", (chunk) => {
    errors += chunk;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Json> => {
    const { done, value } = await lines.next();
    return done ? expect.unreachable(`no further line; ${errors}`) : JSON.parse(value);
  };
  const write = (message: Json) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  let id = 0;
  /** Sends a request of 2026-07-28; returns its id. */
  const ask = (method: string, params: Json = {}, capabilities: Json = {}) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": REVISION,
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    };
    write({ id: ++id, method, params: { ...params, _meta } });
    return id;
  };
  const answer = async (method: string, params: Json = {}, capabilities: Json = {}) => {
    const asked = ask(method, params, capabilities);
    const message = await next();
    expect(message.id).toBe(asked);
    return message;
  };
  /** Initializes an MCP session of revision 2025-11-25. Returns the answer's result. */
  const handshake = async (capabilities: Json = {}) => {
    const clientInfo = { name: "test", version: "1" };
    write({
      id: ++id,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities, clientInfo },
    });
    const { result } = await next();
    write({ method: "notifications/initialized" });
    return result;
  };
  const request = (method: string, params: Json = {}) => {
    write({ id: ++id, method, params });
    return id;
  };
  const end = async () => {
    child.stdin.end();
    await once(child, "close");
  };
  return { child, next, write, ask, answer, handshake, request, end };
}

describe("Depute itself over stdio", () => {
  test("serves clients of 2026-07-28: tools, a delegation as a task, and a stream of its states", async () => {
    const { answer, ask, next } = start([]);
    expect((await answer("server/discover")).result.capabilities.tools).toEqual({});
    const { tools } = (await answer("tools/list")).result;
    expect(tools.map(({ name }: Json) => name)).toContain("delegate");
    const taking = { extensions: { [EXTENSION]: {} }, elicitation: {} };
    const args = { agent: "asker", description: "ask" };
    const { taskId } = (await answer("tools/call", { name: "delegate", arguments: args }, taking)).result;
    const stream = ask("subscriptions/listen", { notifications: { taskIds: [taskId] } }, taking);
    expect((await next()).params.notifications).toEqual({ taskIds: [taskId] });
    let state = (await next()).params;
    while (state.status !== "input_required") state = (await next()).params;
    expect(state._meta["io.modelcontextprotocol/subscriptionId"]).toBe(stream);
  });

  test("serves clients of earlier revisions", async () => {
    const { handshake, request, next, end, child } = start([]);
    expect(await handshake()).toMatchObject({
      protocolVersion: "2025-11-25",
      serverInfo: { name: "depute" },
    });
    const id = request("tools/list");
    expect(await next()).toMatchObject({ id, result: { tools: expect.any(Array) } });
    await end();
    expect(child.exitCode).toBe(0);
  });

  test("asks an earlier client the question of a task, and sends the answer with its own credentials", async () => {
    const [, , ...key] = files;
    const { handshake, request, next, write } = start(key);
    await handshake({ elicitation: {} });
    const args = { agent: "asker", description: "ask" };
    request("tools/call", { name: "delegate", arguments: args, task: {} });
    const { taskId } = (await next()).result.task;
    const id = request("tasks/result", { taskId });
    const question = await next();
    expect(question).toMatchObject({ method: "elicitation/create", params: { message: "which?" } });
    write({ id: question.id, result: { action: "accept", content: { answer: "this" } } });
    expect(await next()).toMatchObject({ id, result: { structuredContent: { output: "this" } } });
  });

  test("answers the requests that run when its input ends", async () => {
    const { ask, next, end } = start([]);
    const id = ask("tools/call", { name: "discover", arguments: {} });
    const [message] = await Promise.all([next(), end()]);
    expect(message).toMatchObject({ id, result: { structuredContent: { capabilities: [] } } });
  });

  test("reports a malformed line, and a platform that does not run", async () => {
    const none = start([], "http://127.0.0.1:9");
    none.child.stdin.write("no json\n");
    expect(await none.next()).toMatchObject({ id: null, error: { code: -32700 } });
    expect((await none.answer("tools/list")).error).toMatchObject({
      code: -32603,
      message: expect.stringContaining("http://127.0.0.1:9 cannot be reached"),
    });
  });

  test.each([
    [["Not a name"], /not the name of an MCP server/],
    [["--token-file", "/dev/null"], /needs a proof of its holder/],
  ])("%j: refuses to start, with the reason", async (words, reason) => {
    const { child, end } = start(words);
    const errors = child.stderr.toArray();
    await end();
    expect(String(await errors)).toMatch(reason);
    expect(child.exitCode).toBe(2);
  });
});

describe("a proxied server over stdio", () => {
  const call = (name: string, args: Json = {}) => ({ name, arguments: args });

  test("needs the credentials, which a context can name", async () => {
    const bare = start(["fixture"]);
    expect((await bare.answer("tools/call", call("test_simple_text"))).error.code).toBe(-32001);
    const config = join(folder, "own.json");
    const [, tokenFile, , keyFile] = files;
    const contexts = { own: { server: platform.url, tokenFile, keyFile } };
    writeFileSync(config, JSON.stringify({ current: "own", contexts }), { mode: 0o600 });
    const { answer } = start(["fixture"], platform.url, { DEPUTE_CONFIG: config });
    const { result } = await answer("tools/call", call("test_simple_text"));
    expect(result.content[0].text).toBe("This is a simple text response for testing.");
  });

  test("gets the headers that repeat arguments, also for a tool that the client has not listed", async () => {
    const { answer } = start(["fixture", ...files]);
    const { result } = await answer("tools/call", call("test_x_mcp_header", { region: "Zürich" }));
    expect(result.content[0].text).toBe("region Zürich");
  });

  test("asks an earlier client on its own lines, and notifies its session", async () => {
    const { handshake, request, next, write } = start(["fixture", ...files]);
    await handshake({ elicitation: {} });
    const subscribed = request("resources/subscribe", { uri: "test://watched-resource" });
    expect(await next()).toMatchObject({ id: subscribed, result: {} });
    const called = request("tools/call", call("test_elicitation", { message: "who?" }));
    const asked = await next();
    expect(asked).toMatchObject({ method: "elicitation/create", params: { message: "who?" } });
    write({ id: asked.id, result: { action: "accept", content: { response: "Ada" } } });
    const result = await next();
    expect(result.id).toBe(called);
    expect(result.result.content[0].text).toContain("Ada");
    const changed = request("tools/call", call("change_resource", { uri: "test://watched-resource" }));
    const messages = [await next(), await next()];
    expect(messages.find(({ id }) => id === changed)?.result).toBeDefined();
    expect(messages.find(({ method }) => method !== undefined)).toMatchObject({
      method: "notifications/resources/updated",
      params: { uri: "test://watched-resource" },
    });
  });
});

test("a session that the platform has lost is opened again", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-mcp-relay-data-"));
  const upstreams = { fixture: { http: { url: started.fixture.url }, requireToken: false, map: MAP } };
  const before = await startPlatform(upstreams, [], { dataDir });
  const port = new URL(before.url).port;
  const { handshake, request, next } = start(["fixture"], before.url);
  await handshake();
  const first = request("tools/list");
  expect(await next()).toMatchObject({ id: first, result: { tools: [{ name: "test_simple_text" }] } });
  await before.stop();
  const after = await startPlatform(upstreams, ["--gateway-port", port], { dataDir });
  try {
    const id = request("tools/call", { name: "test_simple_text", arguments: {} });
    expect(await next()).toMatchObject({ id, result: { content: [{ type: "text" }] } });
  } finally {
    await after.stop();
    rmSync(dataDir, { recursive: true });
  }
}, 60_000);

const MAP = { tools: { test_simple_text: { namespace: "compute", action: "execute" } } };
