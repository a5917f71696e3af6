import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { earlierSdk } from "./earlier-sdk.ts";
import { connect } from "./holder.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** This file tests the MCP sessions of Depute's own server at `/mcp`. Its clients are the official SDKs and fetch. */

const FORM = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const RELATED = "io.modelcontextprotocol/related-task";

let platform: McpPlatform;
const steps = new Map<string, () => void>();
beforeAll(async () => {
  platform = await startPlatform({});
  for (const id of ["asker", "former", "stepper"]) await introduce(platform, id);
  platform.work("asker", async (_, { ask }) => ({ output: [await ask("which?"), await ask("sure?")] }));
  platform.work("former", async (_, { ask }) => ({ output: await ask("where?", FORM) }));
  platform.work("stepper", async (input, { progress }) => {
    for (const processed of [1, 2, 3]) {
      await new Promise<void>((resolve) => steps.set(String((input as Json).name), resolve));
      await progress(processed, 3, `step ${processed}`);
    }
    return { output: "stepped" };
  });
}, 60_000);
afterAll(() => platform.stop());

/** Makes a `fetch` that adds a new proof of one key to each request (RFC 9449). */
function provingFetch(keypair = generateKeypair(engine)): typeof fetch {
  return (input, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("dpop", createProof(engine, keypair, { htm: init.method ?? "GET", htu: String(input) }));
    return fetch(input, { ...init, headers });
  };
}

/** Connects the official client of SDK 1.x, which answers elicitations with `answer`. */
async function earlierClient(
  answer: (params: Json, signal: AbortSignal) => Promise<Json>,
  { via = provingFetch(), capabilities = { elicitation: {} } as Json } = {},
) {
  const [{ Client }, { StreamableHTTPClientTransport }, types] = await Promise.all(
    ["client/index", "client/streamableHttp", "types"].map(earlierSdk),
  );
  const client: Json = new Client({ name: "sdk-1", version: "1.0.0" }, { capabilities });
  if (capabilities.elicitation !== undefined)
    client.setRequestHandler(types.ElicitRequestSchema, ({ params }: Json, { signal }: Json) =>
      answer(params, signal),
    );
  const url = new URL(`${platform.url}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: via }));
  const begin = async (agent: string): Promise<string> => {
    const params = { name: "delegate", arguments: { agent, description: "do" }, task: {} };
    const { task } = await client.request({ method: "tools/call", params }, types.CreateTaskResultSchema);
    return task.taskId;
  };
  const resultOf = async (taskId: string): Promise<Json> => {
    const result = await client.experimental.tasks.getTaskResult(taskId, types.CallToolResultSchema);
    return result.structuredContent;
  };
  const use = async (name: string, args: Json): Promise<Json> =>
    (await client.callTool({ name, arguments: args })).structuredContent;
  const statusOf = async (taskId: string) => (await client.experimental.tasks.getTask(taskId)).status;
  return { client, begin, resultOf, use, statusOf };
}

describe("tasks/result in a session", () => {
  test("asks each question of the task, and the answer needs the credentials of its own request", async () => {
    const asked: Json[] = [];
    const { client, begin, resultOf } = await earlierClient(async (params) => {
      asked.push(params);
      return { action: "accept", content: { answer: `answer ${asked.length}` } };
    });
    const taskId = await begin("asker");
    expect(await resultOf(taskId)).toMatchObject({ status: "completed", output: ["answer 1", "answer 2"] });
    expect(asked).toMatchObject([{ message: "which?" }, { message: "sure?" }]);
    expect(asked.map((params) => params._meta[RELATED])).toEqual([{ taskId }, { taskId }]);
    await client.close();
  });

  test.each([
    ["an accepted form is the answer", { action: "accept", content: { city: "Bern" } }, { city: "Bern" }],
    ["a declined question is answered with null", { action: "decline" }, null],
  ])("%s", async (_, response, output) => {
    const asked: Json[] = [];
    const { client, begin, resultOf } = await earlierClient(async (params) => {
      asked.push(params);
      return response;
    });
    expect(await resultOf(await begin("former"))).toMatchObject({ output });
    expect(asked).toMatchObject([{ mode: "form", requestedSchema: FORM }]);
    await client.close();
  });

  test("a question that is answered otherwise is withdrawn", async () => {
    const via = provingFetch();
    const asked = Promise.withResolvers<void>();
    const withdrawn = Promise.withResolvers<void>();
    const { client, begin, resultOf } = await earlierClient(
      async ({ message }, signal) => {
        // SDK 1.x ignores the cancellation of a request with the id 0, so the first question is answered.
        if (message === "which?") return { action: "accept", content: { answer: "this" } };
        signal.addEventListener("abort", () => withdrawn.resolve());
        asked.resolve();
        return new Promise(() => {});
      },
      { via },
    );
    const taskId = await begin("asker");
    const result = resultOf(taskId);
    await asked.promise;
    const other = await earlierClient(async () => ({}), { via, capabilities: {} });
    await other.use("answer", { task: taskId, value: "yes" });
    await withdrawn.promise;
    expect(await result).toMatchObject({ output: ["this", "yes"] });
    await Promise.all([client.close(), other.client.close()]);
  });

  test("a client whose user closes with an error leaves the question open", async () => {
    const { client, begin, resultOf, use, statusOf } = await earlierClient(async () => {
      throw new Error("there is no one here");
    });
    const taskId = await begin("former");
    const result = resultOf(taskId);
    await expect.poll(() => statusOf(taskId)).toBe("input_required");
    await use("answer", { task: taskId, value: { city: "Oslo" } });
    expect(await result).toMatchObject({ output: { city: "Oslo" } });
    await client.close();
  });

  test("another caller is not asked, and learns nothing of the task", async () => {
    const owner = await earlierClient(async () => ({ action: "decline" }));
    const asked: Json[] = [];
    const stranger = await earlierClient(async (params) => {
      asked.push(params);
      return { action: "accept", content: { city: "Rome" } };
    });
    const taskId = await owner.begin("former");
    await expect.poll(() => owner.statusOf(taskId)).toBe("input_required");
    const error = { code: -32602, message: expect.stringContaining("does not exist") };
    await expect(stranger.resultOf(taskId)).rejects.toMatchObject(error);
    expect(asked).toEqual([]);
    expect(await owner.resultOf(taskId)).toMatchObject({ output: null });
    await Promise.all([owner.client.close(), stranger.client.close()]);
  });
});

/** Sends a message without an SDK, and returns its answer. */
async function post(message: Json, headers: Record<string, string> = {}, method = "POST") {
  const answer = await fetch(`${platform.url}/mcp`, {
    method,
    headers: {
      ...{ "content-type": "application/json", accept: "application/json, text/event-stream" },
      ...headers,
    },
    ...(method === "POST" ? { body: JSON.stringify({ jsonrpc: "2.0", ...message }) } : {}),
  });
  const text = await answer.text();
  const data = text.startsWith("{") ? text : (/^data: (\{.*\})$/m.exec(text)?.[1] ?? "{}");
  return { status: answer.status, session: answer.headers.get("mcp-session-id"), body: JSON.parse(data) };
}

const INITIALIZE = {
  id: 0,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};
const LIST = { id: 1, method: "tools/list", params: {} };
const LEVEL = { id: 2, method: "logging/setLevel", params: { level: "error" } };

/** Opens a session. Returns the headers that its later requests need; credentials are not among them. */
async function open(credentials: Record<string, string> = {}) {
  const { session, body } = await post(INITIALIZE, credentials);
  expect(body.result.capabilities.logging).toEqual({});
  return { "mcp-session-id": session ?? "", "mcp-protocol-version": "2025-11-25" };
}

describe("a session id", () => {
  const credentials = (name: string) => ({ authorization: `Bearer ${name}` });
  const tools = { status: 200, body: { result: { tools: expect.any(Array) } } };

  test("names the session until its client ends it", async () => {
    const session = await open();
    expect(await post(LEVEL, session)).toMatchObject({ status: 200, body: { result: {} } });
    expect((await post({}, session, "GET")).status).toBe(405);
    expect((await post({}, session, "DELETE")).status).toBe(200);
    expect(await post(LIST, session)).toMatchObject({ status: 404, body: { error: { code: -32001 } } });
  });

  test("of another caller neither sets the level nor ends the session", async () => {
    const session = await open(credentials("one"));
    for (const other of [credentials("two"), {}]) {
      expect((await post(LEVEL, { ...session, ...other })).body.error).toMatchObject({ code: -32601 });
      expect((await post({}, { ...session, ...other }, "DELETE")).status).not.toBe(200);
    }
    expect((await post(LEVEL, { ...session, ...credentials("one") })).body).toMatchObject({ result: {} });
  });

  test("belongs to the first credentials that come with it", async () => {
    const session = await open();
    expect((await post(LEVEL, { ...session, ...credentials("one") })).body).toMatchObject({ result: {} });
    expect((await post(LEVEL, { ...session, ...credentials("two") })).body.error.code).toBe(-32601);
  });

  test.each(["of another process", "of an earlier start", "☃"])(
    "%s does not hinder a request, because a request needs no session",
    async (name) => {
      const session = { "mcp-session-id": encodeURIComponent(name) };
      expect(await post(LIST, { ...session, "mcp-protocol-version": "2025-11-25" })).toMatchObject(tools);
    },
  );

  test("does not replace credentials: a proof that is not valid is 401", async () => {
    const keypair = generateKeypair(engine);
    const proof = (htu: string) => ({ dpop: createProof(engine, keypair, { htm: "POST", htu }) });
    const session = await open(proof(`${platform.url}/mcp`));
    const call = { id: 3, method: "tools/call", params: { name: "discover", arguments: {} } };
    const of = (headers: Record<string, string>) => post(call, { ...session, ...headers });
    expect(await of(proof(`${platform.url}/mcp`))).toMatchObject({ status: 200, body: { result: {} } });
    const refused = { status: 401, body: { id: 3, error: { data: { metadata: { claim: "htu" } } } } };
    expect(await of(proof("http://elsewhere.example/mcp"))).toMatchObject(refused);
  });

  test("is not needed", async () => {
    expect(await post(LIST, { "mcp-protocol-version": "2025-11-25" })).toMatchObject(tools);
  });
});

describe.each(["2025-11-25", "2026-07-28"] as const)("a tool that waits, revision %s", (revision) => {
  const isModern = revision === "2026-07-28";

  /** Delegates a task of three steps, and returns what the client of `watch` received. */
  async function watched(level: "info" | "error" | undefined) {
    const client = await connect(`${platform.url}/mcp`, revision);
    const logs: Json[] = [];
    const told: Json[] = [];
    client.setNotificationHandler("notifications/message", ({ params }) => {
      logs.push(params);
    });
    if (!isModern && level !== undefined) await client.setLoggingLevel(level);
    const name = `${revision} ${level}`;
    const args = { agent: "stepper", description: "step", input: { name } };
    const { task } = (await client.callTool({ name: "delegate", arguments: args })).structuredContent as Json;
    const _meta = isModern && level !== undefined ? { "io.modelcontextprotocol/logLevel": level } : undefined;
    const result = client.callTool(
      { name: "watch", arguments: { task, wait_ms: 20_000 }, ...(_meta && { _meta }) },
      { onprogress: (progress) => told.push(progress) },
    );
    for (const count of [1, 2, 3]) {
      await expect.poll(() => steps.has(name)).toBe(true);
      const step = steps.get(name);
      steps.delete(name);
      step?.();
      await expect.poll(() => told).toHaveLength(count);
    }
    expect((await result).structuredContent).toMatchObject({ task, status: "completed", output: "stepped" });
    await client.close();
    return { task, logs, told };
  }

  test("sends progress and log messages before its result", async () => {
    const { task, logs, told } = await watched("info");
    expect(told).toEqual([1, 2, 3].map((progress) => ({ progress, total: 3, message: `step ${progress}` })));
    expect(logs.at(-1)).toMatchObject({
      ...{ level: "info", logger: "depute" },
      data: { task, status: "completed" },
    });
    const messages = logs.map(({ data }) => data.message);
    expect(messages).toEqual(expect.arrayContaining(["running: step 1", "running: step 2"]));
  });

  test("sends no log message below the level", async () => {
    expect((await watched("error")).logs).toEqual([]);
  });

  // Without a level, a request of 2026-07-28 gets no log messages. In a session of 2025-11-25 the server decides.
  test("without a level, sends log messages only in a session", async () => {
    const { logs } = await watched(undefined);
    expect(logs.length > 0).toBe(!isModern);
  });
});
