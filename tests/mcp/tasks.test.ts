import { createProof, generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, type Json } from "../gateway/platform.ts";
import { type McpPlatform, startPlatform } from "./platform.ts";

/** This file tests the MCP tasks of Depute's own server at `/mcp`. The client uses no SDK. */

const EXTENSION = "io.modelcontextprotocol/tasks";
const REVISION = "2026-07-28";

let platform: McpPlatform;
let ready: () => void = () => {};
beforeAll(async () => {
  platform = await startPlatform({});
  for (const id of ["counter", "asker", "former", "failer", "waiter"]) await introduce(platform, id);
  platform.work("counter", async () => ({ output: { words: 3 } }));
  platform.work("asker", async (_, { ask }) => ({
    output: { chosen: [await ask("which?", ["a", "b"]), await ask("sure?")] },
  }));
  platform.work("former", async (_, { ask }) => ({ output: await ask("where?", FORM) }));
  platform.work("failer", async () => {
    throw new Error("there was no luck");
  });
  platform.work("waiter", async (_, { signal }) => {
    await new Promise<void>((resolve) => {
      ready = resolve;
      signal.addEventListener("abort", () => resolve(), { once: true });
    });
    return { output: "waited" };
  });
}, 60_000);
afterAll(async () => {
  ready();
  await platform.stop();
});

const FORM = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** Reads the answer to a request, as JSON or as a stream of events. */
async function read(answer: Response): Promise<Json> {
  const text = await answer.text();
  const body = text.startsWith("{") ? text : text.match(/^data: (\{.*\})$/m)?.[1];
  return { http: answer.status, ...JSON.parse(body ?? "{}") };
}

let id = 0;

interface Client {
  readonly capabilities?: Json;
  readonly headers?: Record<string, string>;
}

const ANSWERING: Client = { capabilities: { extensions: { [EXTENSION]: {} }, elicitation: {} } };
const SILENT: Client = { capabilities: { extensions: { [EXTENSION]: {} } } };

/** Sends a request of revision 2026-07-28. */
async function send(client: Client, method: string, params: Json): Promise<Json> {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientCapabilities": client.capabilities ?? {},
  };
  const body = { jsonrpc: "2.0", id: ++id, method, params: { ...params, _meta } };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": REVISION,
    "mcp-method": method,
    "mcp-name": params.taskId ?? params.name ?? "",
    ...client.headers,
  };
  return read(await fetch(`${platform.url}/mcp`, { method: "POST", headers, body: JSON.stringify(body) }));
}

const delegate = (client: Client, agent: string, more: Json = {}) =>
  send(client, "tools/call", { name: "delegate", arguments: { agent, description: "do", ...more } });

const created = async (agent: string, client = ANSWERING): Promise<string> =>
  (await delegate(client, agent)).result.taskId;

async function until(taskId: string, status: string, client = ANSWERING): Promise<Json> {
  let result: Json;
  await expect
    .poll(async () => {
      result = (await send(client, "tasks/get", { taskId })).result;
      return result.status;
    })
    .toBe(status);
  return result;
}

describe("the extension of revision 2026-07-28", () => {
  test("is a capability of the server", async () => {
    const { result } = await send({}, "server/discover", {});
    expect(result.capabilities.extensions).toEqual({ [EXTENSION]: {} });
    expect(result.capabilities.tasks).toBeUndefined();
  });

  test("a delegation answers with a task that tasks/get and the platform find at once", async () => {
    const { result } = await delegate(ANSWERING, "waiter");
    expect(result).toEqual({
      resultType: "task",
      taskId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      status: "working",
      statusMessage: expect.any(String),
      createdAt: expect.stringMatching(/Z$/),
      lastUpdatedAt: expect.stringMatching(/Z$/),
      ttlMs: null,
      pollIntervalMs: 1000,
      _meta: expect.anything(),
    });
    const { taskId } = result;
    expect((await send(SILENT, "tasks/get", { taskId })).result).toMatchObject({
      resultType: "complete",
      taskId,
      status: "working",
    });
    const { task } = await platform.clients.tasks.getTask({ taskId });
    expect(task?.agentId).toBe("waiter");
    await send(SILENT, "tasks/cancel", { taskId });
  });

  test("a completed task has the tool's result, and a delegation that waits for it answers with the result", async () => {
    const done = await until(await created("counter"), "completed");
    expect(done.result.structuredContent).toMatchObject({ status: "completed", output: { words: 3 } });
    expect(JSON.parse(done.result.content[0].text)).toEqual(done.result.structuredContent);
    expect(done.result.isError).toBeUndefined();
    const { result } = await delegate(ANSWERING, "counter", { wait_ms: 10_000 });
    expect(result).toMatchObject({ resultType: "complete", structuredContent: { output: { words: 3 } } });
  });

  test("a failed task is completed with an error result", async () => {
    const done = await until((await delegate(ANSWERING, "failer", {})).result.taskId, "completed");
    expect(done.result).toMatchObject({ isError: true, structuredContent: { status: "failed" } });
  }, 60_000);

  test("questions are elicitations, each with a key of its own, which tasks/update answers once", async () => {
    const taskId = await created("asker");
    const first = await until(taskId, "input_required");
    const [[key, request] = []] = Object.entries<Json>(first.inputRequests);
    expect(request).toMatchObject({
      method: "elicitation/create",
      params: { mode: "form", message: 'which?\n["a","b"]', requestedSchema: { required: ["answer"] } },
    });
    const answer = (name: string, word: string) =>
      send(ANSWERING, "tasks/update", {
        taskId,
        inputResponses: { [name]: { action: "accept", content: { answer: word } } },
      });
    expect((await answer("unknown", "x")).result).toMatchObject({ resultType: "complete" });
    expect((await answer(String(key), "a")).error).toBeUndefined();
    let second: Json;
    await expect
      .poll(async () => {
        second = (await send(ANSWERING, "tasks/get", { taskId })).result;
        return Object.keys(second.inputRequests ?? {})[0];
      })
      .not.toBeOneOf([key, undefined]);
    // The first answer, sent again, does not answer the second question.
    expect((await answer(String(key), "b")).error).toBeUndefined();
    await answer(Object.keys(second.inputRequests)[0] ?? "", "yes");
    const done = await until(taskId, "completed");
    expect(done.result.structuredContent.output).toEqual({ chosen: ["a", "yes"] });
  });

  test("details that form a schema become the form of the elicitation; a declined question has no answer", async () => {
    const answered = async (response: Json) => {
      const taskId = await created("former");
      const { inputRequests } = await until(taskId, "input_required");
      const [[key, request] = []] = Object.entries<Json>(inputRequests);
      expect(request?.params).toEqual({ mode: "form", message: "where?", requestedSchema: FORM });
      await send(ANSWERING, "tasks/update", { taskId, inputResponses: { [String(key)]: response } });
      return (await until(taskId, "completed")).result.structuredContent.output;
    };
    expect(await answered({ action: "accept", content: { city: "Bern" } })).toEqual({ city: "Bern" });
    expect(await answered({ action: "decline" })).toBeNull();
  });

  test("a client without forms gets the question as text", async () => {
    const asked = await until(await created("former", SILENT), "input_required", SILENT);
    expect(asked).toMatchObject({ statusMessage: "input required: where?" });
    expect(asked.inputRequests).toBeUndefined();
  });

  test("a cancelled task is cancelled, and a second cancellation changes nothing", async () => {
    const taskId = await created("waiter");
    for (const _ of [1, 2])
      expect((await send(SILENT, "tasks/cancel", { taskId })).result).toEqual({
        resultType: "complete",
        _meta: expect.anything(),
      });
    await until(taskId, "cancelled");
    const done = await created("counter");
    await until(done, "completed");
    expect((await send(SILENT, "tasks/cancel", { taskId: done })).error).toBeUndefined();
    expect((await send(SILENT, "tasks/get", { taskId: done })).result.status).toBe("completed");
  });

  test.each(["tasks/get", "tasks/update", "tasks/cancel"])(
    "%s needs the declaration and a task",
    async (method) => {
      const taskId = await created("counter");
      expect(await send({}, method, { taskId })).toMatchObject({
        http: 400,
        error: { code: -32021, data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } } },
      });
      for (const unknown of [crypto.randomUUID(), "no task", "../.."]) {
        expect(await send(SILENT, method, { taskId: unknown })).toMatchObject({ error: { code: -32602 } });
      }
      expect(await send(SILENT, method, {})).toMatchObject({ error: { code: expect.any(Number) } });
    },
  );

  test("another caller's task looks like an unknown task, and wrong credentials are challenged", async () => {
    const holder = () => {
      const keypair = generateKeypair(engine);
      const proof = (htu = `${platform.url}/mcp`) => createProof(engine, keypair, { htm: "POST", htu });
      return (htu?: string): Client => ({ ...ANSWERING, headers: { dpop: proof(htu) } });
    };
    const [owner, stranger] = [holder(), holder()];
    const { taskId } = (await delegate(owner(), "former")).result;
    await expect
      .poll(async () => (await send(owner(), "tasks/get", { taskId })).result.status)
      .toBe("input_required");
    const { inputRequests } = (await send(owner(), "tasks/get", { taskId })).result;
    const [key = ""] = Object.keys(inputRequests);
    const inputResponses = { [key]: { action: "accept", content: { city: "Rome" } } };
    const params = { taskId, inputResponses };
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      const real = await send(stranger(), method, params);
      const invented = await send(stranger(), method, { ...params, taskId: crypto.randomUUID() });
      expect(real.error).toEqual(invented.error);
      expect(real.error.code).toBe(-32602);
      expect(await send(stranger("http://elsewhere.example/mcp"), method, params)).toMatchObject({
        http: 401,
        error: { data: { reason: "UNAUTHENTICATED" } },
      });
    }
    expect((await send(owner(), "tasks/update", params)).error).toBeUndefined();
    await expect
      .poll(
        async () => (await send(owner(), "tasks/get", { taskId })).result.result?.structuredContent.output,
      )
      .toEqual({ city: "Rome" });
  });

  test.each(["tasks/list", "tasks/result"])("has no %s", async (method) => {
    expect(await send(SILENT, method, { taskId: "x" })).toMatchObject({ error: { code: -32601 } });
  });

  test("a client that does not declare it gets the result of the tool", async () => {
    const { result } = await delegate({}, "counter");
    expect(result).toMatchObject({ resultType: "complete", structuredContent: { agent: "counter" } });
    const other = await send(SILENT, "tools/call", { name: "discover", arguments: {}, task: { ttl: 1 } });
    expect(other.result.resultType).toBe("complete");
  });
});

/** Sends a request of revision 2025-11-25, without an MCP session. */
async function sendEarlier(method: string, params: Json): Promise<Json> {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params });
  return read(await fetch(`${platform.url}/mcp`, { method: "POST", headers, body }));
}

describe("the form of revision 2025-11-25", () => {
  const call = (agent: string, more: Json = { task: { ttl: 60_000 } }) =>
    sendEarlier("tools/call", { name: "delegate", arguments: { agent, description: "do" }, ...more });

  test("is a capability of the server and of the tool", async () => {
    const clientInfo = { name: "test", version: "1" };
    const begin = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    const { capabilities } = (await sendEarlier("initialize", begin)).result;
    expect(capabilities.tasks).toEqual({ list: {}, cancel: {}, requests: { tools: { call: {} } } });
    const { tools } = (await sendEarlier("tools/list", {})).result;
    const support = tools.map((tool: Json) => [tool.name, tool.execution?.taskSupport]);
    expect(Object.fromEntries(support)).toMatchObject({ delegate: "optional", watch: undefined });
  });

  test("a delegation as a task, its result with the related task, and the list", async () => {
    const { task } = (await call("counter")).result;
    expect(task).toMatchObject({ status: expect.any(String), ttl: null, pollInterval: 1000 });
    const { taskId } = task;
    const { result } = await sendEarlier("tasks/result", { taskId });
    expect(result).toMatchObject({
      structuredContent: { task: taskId, output: { words: 3 } },
      _meta: { "io.modelcontextprotocol/related-task": { taskId } },
    });
    expect((await sendEarlier("tasks/get", { taskId })).result).toMatchObject({
      taskId,
      status: "completed",
    });
    const { tasks } = (await sendEarlier("tasks/list", {})).result;
    expect(tasks[0]).toMatchObject({ taskId, status: "completed" });
  });

  test("an error result fails the task", async () => {
    const { taskId } = (await call("failer")).result.task;
    expect((await sendEarlier("tasks/result", { taskId })).result.isError).toBe(true);
    expect((await sendEarlier("tasks/get", { taskId })).result.status).toBe("failed");
  }, 60_000);

  test("cancels a task once", async () => {
    const { taskId } = (await call("waiter")).result.task;
    expect((await sendEarlier("tasks/cancel", { taskId })).result).toMatchObject({
      taskId,
      status: "cancelled",
    });
    const done = (await call("counter")).result.task.taskId;
    await sendEarlier("tasks/result", { taskId: done });
    expect((await sendEarlier("tasks/cancel", { taskId: done })).error.code).toBe(-32602);
  });

  test("a tool without tasks refuses one", async () => {
    const refused = await sendEarlier("tools/call", { name: "discover", arguments: {}, task: {} });
    expect(refused.error.code).toBe(-32601);
  });
});
