import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { describe, expect, test } from "vitest";
import { call, introduce, json, notification, result, startPlatform, value } from "../gateway/platform.ts";
import { eventsIn, send } from "./plain-http.ts";
import { CONTEXT, dataOf, frames, Scene, work } from "./scene.ts";

const scene = new Scene();
const { countTasks, heldCalls, nekte, refused, status } = scene;

describe("nekte.delegate", () => {
  test("streams the task's events, byte for byte", async () => {
    const params = work("Analyze sentiment of 3 reviews");
    const response = await nekte("nekte.delegate", params, "/nekte/nlp-worker");
    expect(response.status).toBe(200);
    expect(response.headers.get("cache-control")).toBe("no-cache");
    expect(response.headers.get("x-accel-buffering")).toBe("no");
    const { id } = params.task;
    const text = (await response.text()).replace(/"ms":\d+/, '"ms":1');
    expect(text).toBe(
      `id: 4\nevent: progress\ndata: {"processed":1,"total":2,"message":"half"}\n\n` +
        `id: 5\nevent: partial\ndata: {"out":{"so":"far"},"resolved_level":"compact"}\n\n` +
        `id: 6\nevent: complete\ndata: {"task_id":"${id}","out":{"minimal":"done","compact":{"got":{"reviews":3}}},` +
        `"meta":{"ms":1,"tokens_used":6},"status":"completed"}\n\n`,
    );
    const task = await scene.platform.clients.tasks.getTask({ externalId: id });
    expect(task.task).toMatchObject({
      agentId: "nlp-worker",
      capabilityId: "",
      description: "Analyze sentiment of 3 reviews",
      limits: { total: { seconds: 20n } },
      status: TaskStatus.COMPLETED,
    });
  });

  test("continues the task after a lost stream; Last-Event-ID returns the rest", async () => {
    const params = work("wait");
    const { id } = params.task;
    const leaving = new AbortController();
    const first = await fetch(`${scene.platform.url}/nekte/nlp-worker`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call("nekte.delegate", params)),
      signal: leaving.signal,
    });
    await frames(first, "event: partial");
    leaving.abort();
    expect(await status(id)).toMatchObject({ status: "running", progress: { processed: 1, total: 2 } });
    const again = await scene.platform.post("/nekte/nlp-worker", call("nekte.delegate", params), {
      "last-event-id": "4",
    });
    heldCalls.get(id)?.();
    const rest = await frames(again);
    expect(rest.map((frame) => frame.split("\n", 2))).toEqual([
      ["id: 5", "event: partial"],
      ["id: 6", "event: complete"],
    ]);
    const all = await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    expect(all.slice(-2)).toEqual(rest);
    const resumed = (id: string) =>
      scene.platform.post("/nekte/nlp-worker", call("nekte.delegate", params), { "last-event-id": id });
    expect(await frames(await resumed("6"))).toEqual([]);
    expect(await frames(await resumed("7"))).toEqual([
      expect.stringMatching(
        /^event: error\n.*-32602.*Last-Event-ID: is beyond the newest event of the task, which is 6/s,
      ),
    ]);
  });

  test("refuses the same id with another body before a stream begins", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const other = { ...params, task: { ...params.task, desc: "something else" } };
    expect(await refused(other)).toMatchObject({
      code: -32602,
      data: { reason: "TASK_ID_TAKEN" },
    });
  });

  test.each<[string, Record<string, string>]>([
    ["no Accept", {}],
    ["any type", { accept: "*/*" }],
    ["any text", { accept: "application/json;q=0.9, text/*" }],
    ["event streams", { accept: "application/json, text/event-stream;q=0.9" }],
  ])("answers a client that accepts %s with events, also for refusals", async (_, headers) => {
    const url = `${scene.platform.url}/nekte/nlp-worker`;
    const params = work();
    const { id } = params.task;
    const begun = await send(url, call("nekte.delegate", params), headers);
    expect(eventsIn(begun.text).map(({ event }) => event)).toEqual(["progress", "partial", "complete"]);
    const other = { ...params, task: { ...params.task, desc: "something else" } };
    const refusal = await send(url, call("nekte.delegate", other), headers);
    expect(refusal.headers["content-type"]).toBe("text/event-stream");
    expect(refusal.text).toBe(
      `event: error\ndata: {"task_id":"${id}","code":-32602,"message":"another task has this external id: choose another external id"}\n\n`,
    );
    const broken = await send(url, call("nekte.delegate", { task: { id } }), headers);
    expect(eventsIn(broken.text)).toEqual([
      { event: "error", data: expect.objectContaining({ task_id: id, code: -32602 }) },
    ]);
  });

  test.each(["application/json", "text/event-stream;q=0, application/json"])(
    "answers a client that accepts only JSON in JSON, after the task has ended (%s)",
    async (accept) => {
      const url = `${scene.platform.url}/nekte/nlp-worker`;
      const ask = async (params: object) =>
        JSON.parse((await send(url, call("nekte.delegate", params), { accept })).text);
      const params = work();
      const { id } = params.task;
      expect((await ask(params)).result).toMatchObject({
        task_id: id,
        status: "completed",
        out: { minimal: "done", compact: { got: { reviews: 3 } } },
      });
      const other = { ...params, task: { ...params.task, desc: "something else" } };
      expect((await ask(other)).error).toMatchObject({ code: -32602, data: { reason: "TASK_ID_TAKEN" } });
      const late = work("wait", { timeout_ms: 300 });
      expect((await ask(late)).error).toMatchObject({ code: -32006, message: "TASK_TIMEOUT" });
    },
  );

  test("ends with the protocol's code at its timeout", async () => {
    const stream = await frames(
      await nekte("nekte.delegate", work("wait", { timeout_ms: 300 }), "/nekte/nlp-worker"),
    );
    expect(stream.at(-1)).toMatch(/event: error\ndata: \{"task_id":"task-\d+","code":-32006,/);
  });

  test("runs without a watcher as a notification", async () => {
    const params = work();
    const response = await scene.platform.post("/nekte/nlp-worker", notification("nekte.delegate", params));
    expect(response.status).toBe(204);
    const { task } = await scene.platform.clients.tasks.getTask({
      externalId: params.task.id,
    });
    for await (const _ of scene.platform.clients.tasks.watchTask({ taskId: task?.id ?? "" }));
    expect(await status(params.task.id)).toMatchObject({ status: "completed" });
  });

  test("refuses a context with a scope unless it names a capability", async () => {
    const params = work();
    const scoped = { ...params, context: { ...params.context, scope: ["sentiment"] } };
    const before = await countTasks();
    expect(await refused(scoped)).toMatchObject({
      code: -32005,
      message: "CONTEXT_PERMISSION_DENIED",
    });
    expect(await countTasks()).toBe(before);
  });

  test.each([true, false])("passes a context's data as the input (persist: %s)", async (persist) => {
    const params = work();
    const permissions = { ...CONTEXT.permissions, persist };
    const context = { ...params.context, permissions };
    const stream = await frames(await nekte("nekte.delegate", { ...params, context }, "/nekte/nlp-worker"));
    expect(stream.at(-1)).toContain('"compact":{"got":{"reviews":3}}');
    const { task } = await scene.platform.clients.tasks.getTask({
      externalId: params.task.id,
    });
    expect(task?.input).toEqual(value({ reviews: 3 }));
  });

  test("keeps a context that may not be persisted off the disk", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-context-"));
    const other = await startPlatform(["--data-dir", dataDir]);
    try {
      await introduce(other, "helper");
      other.work("helper", async (_, { contexts }) => ({ output: { length: dataOf(contexts).note.length } }));
      const params = { ...work("count it"), context: { ...CONTEXT, data: { note: "between us" } } };
      const stream = await frames(await other.post("/nekte/helper", call("nekte.delegate", params)));
      expect(stream.at(-1)).toContain('"compact":{"length":10}');
      const written = readdirSync(dataDir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => readFileSync(join(parentPath, name), "latin1"))
        .join("");
      expect(written).toContain("count it");
      expect(written).not.toContain("between us");
    } finally {
      await other.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("resumes after its context has ended", async () => {
    const params = work("wait");
    const { id } = params.task;
    const context = { ...params.context, id: `context of ${id}`, ttl_s: 1 };
    const post = (headers?: Record<string, string>) =>
      scene.platform.post("/nekte/nlp-worker", call("nekte.delegate", { ...params, context }), headers);
    await frames(await post(), "event: partial");
    const request = call("nekte.context", { action: "request", envelope: { id: context.id } });
    while ((await json(scene.platform.post("/nekte", request))).error?.code !== -32004);
    const other = { ...params, task: { ...params.task, desc: "other" }, context };
    expect(await refused(other)).toMatchObject({
      code: -32602,
      data: { reason: "TASK_ID_TAKEN" },
    });
    const again = frames(await post({ "last-event-id": "4" }));
    heldCalls.get(id)?.();
    expect((await again).map((frame) => frame.split("\n", 2))).toEqual([
      ["id: 5", "event: partial"],
      ["id: 6", "event: complete"],
    ]);
  });

  test("resumes with a context id after the context was revoked", async () => {
    const shared = { ...CONTEXT, id: "taken-back", data: { shared: true } };
    await result(nekte("nekte.context", { envelope: shared }));
    const context = { ...CONTEXT, id: shared.id, data: null, compression: "reference" };
    const params = { ...work(), context };
    const post = (body: object, headers?: Record<string, string>) =>
      scene.platform.post("/nekte/nlp-worker", call("nekte.delegate", body), headers);
    const all = await frames(await post(params));
    await result(nekte("nekte.context", { action: "revoke", envelope: { id: shared.id } }));
    expect(await frames(await post(params, { "last-event-id": "5" }))).toEqual(all.slice(-1));
    expect(await refused(params)).toMatchObject({ code: -32004 });
    const other = { ...params, task: { ...params.task, desc: "other" } };
    const lastSeen = { "last-event-id": "5" };
    expect(await refused(other, undefined, lastSeen)).toMatchObject({ code: -32004 });
    const none = { ...params, task: { ...params.task, id: "never" } };
    expect(await refused(none, undefined, lastSeen)).toMatchObject({ code: -32004 });
  });

  test("can name a context that was shared before", async () => {
    const shared = { data: { shared: true }, ...CONTEXT, id: "mine" };
    await result(nekte("nekte.context", { envelope: shared }));
    for (const data of [null, {}]) {
      const context = { ...CONTEXT, id: "mine", data, compression: "reference" };
      const params = { ...work(), context };
      const stream = await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
      expect(stream.at(-1)).toContain('"compact":{"got":{"shared":true}}');
    }
    const none = { ...work(), context: { ...CONTEXT, id: "none", data: null, compression: "reference" } };
    expect(await refused(none)).toMatchObject({
      code: -32053,
      data: { reason: "CONTEXT_NOT_FOUND" },
    });
  });

  test("needs a default agent in the settings at /nekte", async () => {
    const refusal = await refused(work(), "/nekte");
    expect(refusal).toMatchObject({ code: -32053, data: { reason: "AGENT_NOT_FOUND" } });
    expect(refusal.data.detail).toContain("DEPUTE_NEKTE_DEFAULT_AGENT");
  });
});
