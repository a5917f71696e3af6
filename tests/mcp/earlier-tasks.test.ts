import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fromJsonSchema } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Json } from "../gateway/platform.ts";
import { earlierSdk } from "./earlier-sdk.ts";
import { type Grant, grant, holderFetch, type Right } from "./holder.ts";
import { EVERYTHING, type McpPlatform, startPlatform } from "./platform.ts";
import { connectProxy } from "./proxy-process.ts";
import { EXTENSION, earlierServer, modernServer, type TaskServer } from "./task-server.ts";

/**
 * This file tests tasks of MCP servers of revision 2025-11-25 behind the proxy. The client is the official
 * SDK 1.x, and the server uses no SDK.
 */

const RESEARCH = "simulate-research-query";
const NAMES = ["slow", "ask", "required", "dear", RESEARCH];
const map = {
  tools: Object.fromEntries(
    NAMES.map((name) => [name, { namespace: "data", action: "query", resource: name }]),
  ),
  passed: ["elicitation/create"],
};
const ALL: Right[] = NAMES.map((name) => ["data", "query", name] as const);

let server: TaskServer;
let modern: TaskServer;
let platform: McpPlatform;
beforeAll(async () => {
  server = await earlierServer();
  modern = await modernServer();
  platform = await startPlatform({
    jobs: { http: { url: server.url }, map, revision: "legacy" },
    modern: { http: { url: modern.url }, map },
    everything: { stdio: EVERYTHING, map },
  });
}, 60_000);
afterAll(async () => {
  await platform.stop();
  server.close();
  modern.close();
});

/** Connects the official client of SDK 1.x, which answers elicitations and collects the announced states of tasks. */
async function connect(holder: Grant, name = "jobs", capabilities: Json = { elicitation: {} }) {
  const [{ Client }, { StreamableHTTPClientTransport }, types] = await Promise.all(
    ["client/index", "client/streamableHttp", "types"].map(earlierSdk),
  );
  const asked: Json[] = [];
  const announced: Json[] = [];
  const client: Json = new Client({ name: "sdk-1", version: "1.0.0" }, { capabilities });
  if (capabilities.elicitation !== undefined)
    client.setRequestHandler(types.ElicitRequestSchema, ({ params }: Json) => {
      asked.push(params);
      return { action: "accept", content: { name: "Ada" } };
    });
  client.setNotificationHandler(types.TaskStatusNotificationSchema, ({ params }: Json) => {
    announced.push(params);
  });
  const url = new URL(platform.mcp(name));
  await client.connect(new StreamableHTTPClientTransport(url, { fetch: holderFetch(holder) }));
  const begin = async (tool: string, args: Json = {}, options: Json = {}): Promise<Json> =>
    (
      await client.request(
        { method: "tools/call", params: { name: tool, arguments: args, task: { ttl: 60_000 } } },
        types.CreateTaskResultSchema,
        options,
      )
    ).task;
  const resultOf = (taskId: string): Promise<Json> =>
    client.experimental.tasks.getTaskResult(taskId, types.CallToolResultSchema);
  return { client, tasks: client.experimental.tasks, begin, resultOf, asked, announced };
}

const ANY = fromJsonSchema<Json>({ type: "object" });
const everyone = () => grant(platform, ALL);
const lastTask = () => [...server.tasks.keys()].at(-1) ?? "";
const RELATED = "io.modelcontextprotocol/related-task";

describe("the tasks of a server of 2025-11-25", () => {
  test("are a capability, and every tool is listed with its support of tasks", async () => {
    const { client } = await connect(await everyone());
    expect(client.getServerCapabilities().tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    const { tools } = await client.listTools();
    expect(tools.map((tool: Json) => [tool.name, tool.execution.taskSupport])).toEqual([
      ["slow", "optional"],
      ["ask", "optional"],
      ["required", "required"],
    ]);
    await client.close();
  });

  test("tasks/result waits for the end, the session is notified, and the id is the proxy's", async () => {
    const { client, tasks, begin, resultOf, announced } = await connect(await everyone());
    const task = await begin("required", { a: 1 });
    expect(task).toMatchObject({ status: "working", ttl: null });
    expect(task.taskId).not.toContain("upstream");
    expect(await tasks.getTask(task.taskId)).toMatchObject({ taskId: task.taskId, status: "working" });
    const waiting = resultOf(task.taskId);
    await expect
      .poll(() => server.received.filter(({ method }) => method === "tasks/result"))
      .not.toEqual([]);
    server.finish(lastTask());
    const result = await waiting;
    expect(JSON.parse(result.content[0].text)).toEqual([{ a: 1 }, {}]);
    expect(result._meta[RELATED]).toEqual({ taskId: task.taskId });
    expect((await tasks.getTask(task.taskId)).status).toBe("completed");
    await expect.poll(() => announced).toMatchObject([{ taskId: task.taskId, status: "completed" }]);
    await client.close();
  });

  test("the server's question reaches the client during tasks/result", async () => {
    const { client, begin, resultOf, asked } = await connect(await everyone());
    const { taskId, status } = await begin("ask");
    expect(status).toBe("input_required");
    const result = await resultOf(taskId);
    expect(asked).toMatchObject([{ message: "name?", _meta: { [RELATED]: { taskId } } }]);
    expect(JSON.parse(result.content[0].text)[1].name).toMatchObject({ content: { name: "Ada" } });
    await client.close();
  });

  test("the session that began a task is notified of its state", async () => {
    const holder = await everyone();
    const { client, begin, announced } = await connect(holder, "jobs", {});
    const other = await connect(await everyone(), "jobs", {});
    const { taskId } = await begin("slow");
    server.finish(lastTask());
    await expect.poll(() => announced).toMatchObject([{ taskId, status: "completed" }]);
    expect(other.announced).toEqual([]);
    await Promise.all([client.close(), other.client.close()]);
  });

  test("progress continues after the answer to the call", async () => {
    const { client, begin } = await connect(await everyone());
    const told: Json[] = [];
    await begin("slow", {}, { onprogress: (progress: Json) => told.push(progress) });
    server.finish(lastTask());
    await expect.poll(() => told).toEqual([{ progress: 1, total: 2, message: "half" }]);
    await client.close();
  });

  test("a client with other capabilities finds the task of the same caller", async () => {
    const holder = await everyone();
    const { client, begin } = await connect(holder);
    const { taskId } = await begin("slow");
    await client.close();
    const later = await connect(holder, "jobs", {});
    expect((await later.tasks.getTask(taskId)).status).toBe("working");
    expect((await later.tasks.cancelTask(taskId)).status).toBe("cancelled");
    const again = await later.tasks.cancelTask(taskId).catch((thrown: unknown) => thrown);
    expect(again).toMatchObject({ code: -32602, message: expect.stringContaining(`${taskId} has ended`) });
    await later.client.close();
  });

  test("a list contains the tasks of the caller alone, and another caller finds none of them", async () => {
    const [one, two] = [await connect(await everyone()), await connect(await everyone())];
    const [mine, theirs] = [await one.begin("slow"), await two.begin("slow")];
    const idsOf = async ({ tasks }: Json) =>
      (await tasks.listTasks()).tasks.map(({ taskId }: Json) => taskId);
    expect(await idsOf(one)).toEqual([mine.taskId]);
    expect(await idsOf(two)).toEqual([theirs.taskId]);
    for (const method of ["getTask", "cancelTask", "getTaskResult"] as const) {
      const foreign = await one.tasks[method](theirs.taskId).catch((thrown: unknown) => thrown);
      const invented = await one.tasks[method](crypto.randomUUID()).catch((thrown: unknown) => thrown);
      expect(foreign).toMatchObject({ code: -32602 });
      expect(foreign.message).toBe(invented.message);
    }
    await Promise.all([one.client.close(), two.client.close()]);
  });

  test("a call without a task runs at once", async () => {
    const { client } = await connect(await everyone());
    expect((await client.callTool({ name: "slow", arguments: {} })).content).toMatchObject([
      { text: "at once" },
    ]);
    await client.close();
  });
});

test("the official server's task runs to its end behind the proxy", async () => {
  const { client } = await connect(await everyone(), "everything", {});
  const seen: Json[] = [];
  await client.listTools();
  for await (const message of client.experimental.tasks.callToolStream(
    { name: RESEARCH, arguments: { topic: "tasks" } },
    undefined,
    { task: { ttl: 60_000 } },
  ))
    seen.push(message);
  expect(seen.map(({ type }) => type)).toEqual(
    expect.arrayContaining(["taskCreated", "taskStatus", "result"]),
  );
  expect(seen.at(-1).result.content[0].text).toContain("Research Report: tasks");
  await client.close();
}, 30_000);

test("over stdio the official server's question names the task by the client's id", async () => {
  const folder = mkdtempSync(join(tmpdir(), "depute-mcp-tasks-"));
  const { client, connected } = await connectProxy(
    { platform, folder },
    {
      server: EVERYTHING,
      upstream: { map },
      holder: await everyone(),
      client: { capabilities: { elicitation: {} } },
    },
  );
  const asked: Json[] = [];
  client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(params);
    return { action: "accept", content: { interpretation: "technical" } };
  });
  await connected();
  const send = (method: string, params: Json): Promise<Json> => client.request({ method, params }, ANY);
  const args = { topic: "tasks", ambiguous: true };
  const { task } = await send("tools/call", { name: RESEARCH, arguments: args, task: { ttl: 60_000 } });
  const result = await send("tasks/result", { taskId: task.taskId });
  expect(asked).toMatchObject([{ _meta: { [RELATED]: { taskId: task.taskId } } }]);
  expect(result.content[0].text).toContain("Research Report: tasks (technical)");
  expect((await send("tasks/list", {})).tasks).toMatchObject([{ taskId: task.taskId, status: "completed" }]);
  await client.close();
  rmSync(folder, { recursive: true, force: true });
}, 60_000);

describe("between the eras, tasks are not translated", () => {
  test("a client of 2025-11-25 sees no tasks of a server of 2026-07-28, and its call runs at once", async () => {
    const { client, tasks } = await connect(await everyone(), "modern");
    expect(client.getServerCapabilities().tasks).toBeUndefined();
    const { content } = await client.callTool({ name: "slow", arguments: {}, task: { ttl: 1 } });
    expect(content).toMatchObject([{ text: "at once" }]);
    const refused = await tasks.getTask("x").catch((thrown: unknown) => thrown);
    expect(refused).toMatchObject({ code: -32601 });
    const only = await client.callTool({ name: "dear", arguments: {} }).catch((thrown: unknown) => thrown);
    expect(only).toMatchObject({ code: -32602, data: { detail: expect.stringContaining("only as a task") } });
    await client.close();
  });

  test("a client of 2026-07-28 sees no tasks of a server of 2025-11-25, and no tool that needs one", async () => {
    const { connect: connectModern } = await import("./holder.ts");
    const client = await connectModern(platform.mcp("jobs"), "2026-07-28", holderFetch(await everyone()), {
      capabilities: { extensions: { [EXTENSION]: {} } },
    });
    expect(client.getServerCapabilities()?.extensions).toBeUndefined();
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["slow", "ask"]);
    const calls = server.received.length;
    const only = await client
      .callTool({ name: "required", arguments: {} })
      .catch((thrown: unknown) => thrown);
    expect(only).toMatchObject({ code: -32602, data: { detail: expect.stringContaining("only as a task") } });
    expect(server.received.slice(calls).map(({ method }) => method)).not.toContain("tools/call");
    await client.close();
  });
});
