import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { type EventStream, openStream } from "./event-stream.ts";
import { type Grant, grant, provedArguments } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";
import { EXTENSION, modernServer, type TaskServer } from "./task-server.ts";

/** This file tests streams of `subscriptions/listen` that show tasks (revision 2026-07-28). The clients use no SDK. */

const REVISION = "2026-07-28";
const SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId";
const TAKING = { extensions: { [EXTENSION]: {} }, elicitation: { form: {} } };
const map = {
  tools: Object.fromEntries(
    ["slow", "ask"].map((name) => [name, { namespace: "data", action: "query", resource: name }]),
  ),
  passed: ["elicitation/create"],
};

let server: TaskServer;
let platform: McpPlatform;
let finish: () => void = () => {};
const started = Promise.withResolvers<void>();
beforeAll(async () => {
  server = await modernServer();
  platform = await startPlatform({ jobs: { http: { url: server.url }, map } });
  for (const id of ["waiter", "asker"]) await introduce(platform, id);
  platform.work("waiter", async () => {
    await new Promise<void>((resolve) => {
      finish = resolve;
      started.resolve();
    });
    return { output: "waited" };
  });
  platform.work("asker", async (_, { ask }) => ({ output: await ask("which?") }));
}, 60_000);
afterAll(async () => {
  finish();
  await platform.stop();
  server.close();
});

let id = 0;
const opened: EventStream[] = [];

interface Sender {
  readonly url: string;
  /** Returns the headers of one request with its credentials. */
  credentials(url: string, body: Json): Record<string, string>;
  readonly capabilities?: Json;
}

/** Sends a request, and reads the messages of its answer. */
async function send(
  { url, credentials, capabilities = TAKING }: Sender,
  method: string,
  params: Json,
): Promise<EventStream> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": capabilities,
  };
  const body = { jsonrpc: "2.0", id: ++id, method, params: { ...params, _meta } };
  const headers = new Headers({
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    ...((params.taskId ?? params.name) && { "mcp-name": params.taskId ?? params.name }),
    ...credentials(url, body),
  });
  const stream = await openStream(url, headers, body);
  opened.push(stream);
  return stream;
}

const result = async (sender: Sender, method: string, params: Json): Promise<Json> =>
  (await (await send(sender, method, params)).next())?.result;
const listen = (sender: Sender, taskIds: unknown, more: Json = {}) =>
  send(sender, "subscriptions/listen", { notifications: { taskIds, ...more } });

/** A client of the proxied server, with a token and its key. */
function holderOf({ token, keypair }: Grant): Sender {
  return {
    url: platform.mcp("jobs"),
    credentials: (htu, body) => ({
      authorization: `DPoP ${token}`,
      dpop: createProof(engine, keypair, { htm: "POST", htu, token, arguments: provedArguments(body) }),
    }),
  };
}

/** A client of Depute's own server, with a key of its own. */
function ownClient(): Sender {
  const keypair = generateKeypair(engine);
  return {
    url: `${platform.url}/mcp`,
    credentials: (htu) => ({ dpop: createProof(engine, keypair, { htm: "POST", htu }) }),
  };
}

const anonymous = (): Sender => ({ url: `${platform.url}/mcp`, credentials: () => ({}) });
const delegate = async (sender: Sender, agent: string): Promise<string> => {
  const args = { agent, description: "do" };
  return (await result(sender, "tools/call", { name: "delegate", arguments: args })).taskId;
};
const allowed = () =>
  grant(platform, [
    ["data", "query", "slow"],
    ["data", "query", "ask"],
  ]);
const begin = async (sender: Sender, name: string): Promise<string> =>
  (await result(sender, "tools/call", { name, arguments: {} })).taskId;
const lastTask = () => [...server.tasks.keys()].at(-1) ?? "";

/** Reads states until one has the status. */
async function until(stream: EventStream, status: string): Promise<Json> {
  for (let i = 0; i < 100; i++) {
    const message = await stream.next();
    expect(message?.method).toBe("notifications/tasks");
    if (message?.params.status === status) return message.params;
  }
  return expect.unreachable(status);
}

describe("Depute's own tasks", () => {
  test("are acknowledged first, then shown as they are, and again after each change", async () => {
    const sender = anonymous();
    const taskId = await delegate(sender, "waiter");
    const stream = await listen(sender, [taskId, crypto.randomUUID()]);
    const subscription = id;
    expect(await stream.next()).toEqual({
      jsonrpc: "2.0",
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: { taskIds: [taskId] }, _meta: { [SUBSCRIPTION]: subscription } },
    });
    const working = await until(stream, "working");
    expect(working).toMatchObject({ taskId, ttlMs: null, _meta: { [SUBSCRIPTION]: subscription } });
    await started.promise;
    finish();
    const done = await until(stream, "completed");
    expect(done.result.structuredContent.output).toBe("waited");
    stream.close();
  });

  test("show a question to a client that supports forms, and not to another", async () => {
    const [asking, silent] = [
      anonymous(),
      { ...anonymous(), capabilities: { extensions: { [EXTENSION]: {} } } },
    ];
    const taskId = await delegate(asking, "asker");
    const streams = [await listen(asking, [taskId]), await listen(silent, [taskId])];
    for (const stream of streams) await stream.next();
    const [shown, hidden] = await Promise.all(streams.map((stream) => until(stream, "input_required")));
    const [key = ""] = Object.keys(shown?.inputRequests);
    expect(shown?.inputRequests[key].params.message).toBe("which?");
    expect(hidden?.inputRequests).toBeUndefined();
    const inputResponses = { [key]: { action: "accept", content: { answer: "this" } } };
    await result(asking, "tasks/update", { taskId, inputResponses });
    for (const stream of streams)
      expect((await until(stream, "completed")).result.structuredContent.output).toBe("this");
  });

  test("are those of the holder of the proof alone", async () => {
    const [owner, stranger] = [ownClient(), ownClient()];
    const mine = [await delegate(owner, "asker"), await delegate(owner, "asker")];
    const acknowledged = async (sender: Sender) =>
      (await (await listen(sender, [...mine, "no task"])).next())?.params.notifications;
    expect(await acknowledged(owner)).toEqual({ taskIds: mine });
    expect(await acknowledged(stranger)).toEqual({});
  });

  test("a stream may show lists beside tasks; a server without lists to announce shows tasks alone", async () => {
    const sender = anonymous();
    const taskId = await delegate(sender, "asker");
    const stream = await listen(sender, [taskId], { toolsListChanged: true });
    expect((await stream.next())?.params.notifications).toEqual({ taskIds: [taskId] });
    await until(stream, "input_required");
  });

  test.each<[string, unknown, Json | undefined, number, number]>([
    ["a client that does not declare the extension", ["x"], {}, 400, -32021],
    ["a list that is no list", "x", undefined, 200, -32602],
    ["a list of other values", [1], undefined, 200, -32602],
    ["too many tasks", Array.from({ length: 101 }, (_, i) => `task-${i}`), undefined, 200, -32602],
  ])("%s is refused", async (_, taskIds, capabilities, status, code) => {
    const stream = await listen({ ...anonymous(), ...(capabilities && { capabilities }) }, taskIds);
    expect(stream.status).toBe(status);
    expect((await stream.next())?.error.code).toBe(code);
  });

  test("wrong credentials are challenged", async () => {
    const keypair = generateKeypair(engine);
    const dpop = () => createProof(engine, keypair, { htm: "POST", htu: "http://elsewhere.example/mcp" });
    const stream = await listen({ ...anonymous(), credentials: () => ({ dpop: dpop() }) }, ["x"]);
    expect(stream.status).toBe(401);
  });
});

describe("tasks of a server behind the proxy", () => {
  test("are shown with the ids of the proxy, from the server's own stream", async () => {
    const sender = holderOf(await allowed());
    const taskId = await begin(sender, "slow");
    const own = lastTask();
    const stream = await listen(sender, [taskId, own]);
    const subscription = id;
    expect((await stream.next())?.params.notifications).toEqual({ taskIds: [taskId] });
    expect(await until(stream, "working")).toMatchObject({ taskId, _meta: { [SUBSCRIPTION]: subscription } });
    server.finish(own);
    const done = await until(stream, "completed");
    expect(done.result.content[0].type).toBe("text");
    expect(JSON.stringify(done)).not.toContain(own);
    stream.close();
    await expect.poll(() => server.listeners(own)).toBe(0);
  });

  test("show the server's question only to a client that declares it", async () => {
    const sender = holderOf(await allowed());
    const taskId = await begin(sender, "ask");
    const asked = await listen(sender, [taskId]);
    await asked.next();
    expect((await until(asked, "input_required")).inputRequests.name.params.message).toBe("name?");
    const silent = await listen({ ...sender, capabilities: { extensions: { [EXTENSION]: {} } } }, [taskId]);
    await silent.next();
    expect((await until(silent, "input_required")).inputRequests).toBeUndefined();
  });

  test("another caller's task is not acknowledged, and does not reach the server", async () => {
    const [owner, stranger] = [holderOf(await allowed()), holderOf(await allowed())];
    const taskId = await begin(owner, "slow");
    const before = server.received.length;
    const stream = await listen(stranger, [taskId]);
    expect((await stream.next())?.params.notifications).toEqual({});
    expect(server.received.slice(before).map(({ method }) => method)).not.toContain("subscriptions/listen");
  });

  test("need the rights of their call, a token with proof, and the declaration", async () => {
    const owner = await allowed();
    const taskId = await begin(holderOf(owner), "slow");
    const narrow = await grant(platform, [["data", "query", "ask"]], 1000, owner.keypair);
    const refusedFor = async (sender: Sender) => {
      const stream = await listen(sender, [taskId]);
      return { status: stream.status, ...(await stream.next())?.error };
    };
    expect(await refusedFor(holderOf(narrow))).toMatchObject({
      code: -32001,
      data: { type: "capability_not_granted" },
    });
    const foreignKey = { ...owner, keypair: generateKeypair(engine) };
    expect((await refusedFor(holderOf(foreignKey))).code).toBe(-32001);
    expect((await refusedFor({ ...holderOf(owner), credentials: () => ({}) })).code).toBe(-32001);
    expect(await refusedFor({ ...holderOf(owner), capabilities: {} })).toMatchObject({
      status: 400,
      code: -32021,
    });
  });
});

afterAll(() => {
  for (const stream of opened) stream.close();
});
