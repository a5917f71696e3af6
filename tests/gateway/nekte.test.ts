import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { holderHeaders, WorkFailure, WorkSuspension } from "@depute/client";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  call,
  error,
  introduce,
  json,
  notification,
  result,
  startPlatform,
  type TestPlatform,
} from "./platform.ts";

let platform: TestPlatform;
/** Works that wait until a test lets them go on, by the task's external id. */
const held = new Map<string, () => void>();

const TEXT = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const OTHER = { type: "object", properties: { other: { type: "string" } } };

beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "nlp-worker", [
    ["sentiment", TEXT, { avgMs: 200 }],
    ["shared"],
    ["fails"],
    ["long"],
  ]);
  await introduce(platform, "other", [["shared", OTHER]]);
  platform.work("nlp-worker", async (input, { task, progress, partial, signal, saved, contexts }) => {
    switch (task.capabilityId) {
      case "sentiment":
        return { output: { label: "mixed", score: 0.62 }, minimal: "mixed" };
      case "fails":
        throw new WorkFailure("NO_LEXICON", "there is no lexicon", false);
      case "long":
        return {
          output: { text: "x".repeat(4000) },
          compact: { text: "x".repeat(200) },
          minimal: "x".repeat(40),
        };
      default:
    }
    if (task.description === "suspend") {
      if (saved === undefined) throw new WorkSuspension("later", { done: 1 });
      return { output: { saved }, minimal: "done" };
    }
    await progress(1, 2, "half");
    await partial({ so: "far" });
    if (task.description === "wait") {
      await new Promise<void>((resolve) => {
        held.set(task.externalId, resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    return { output: { got: contexts.length === 0 ? input : dataOf(contexts) }, minimal: "done" };
  });
  platform.work("other", async (input) => ({ output: { other: input } }));
});
afterAll(() => platform.stop());

/** What came along with the work. */
function dataOf(contexts: readonly { envelope?: { data: Uint8Array } | undefined }[]) {
  const [data] = contexts.map(({ envelope }) => new TextDecoder().decode(envelope?.data));
  return JSON.parse(data ?? "null");
}

const nekte = (method: string, params?: unknown, path = "/nekte") =>
  platform.post(path, call(method, params));

const CONTEXT = { permissions: { forward: false, persist: false, derive: true }, ttl_s: 3600 };
let made = 0;
function work(desc = "x", more: object = {}) {
  return {
    task: { id: `task-${++made}`, desc, timeout_ms: 20_000, ...more },
    context: { data: { reviews: 3 }, ...CONTEXT },
  };
}

/** The same work with a context that may be persisted. */
function lasting<Params extends ReturnType<typeof work>>(params: Params): Params {
  return {
    ...params,
    context: { ...params.context, permissions: { ...CONTEXT.permissions, persist: true } },
  };
}

/** The frames of a stream, read until one begins so or it ends. */
async function frames(response: Response, until?: string): Promise<string[]> {
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  const read: string[] = [];
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split("\n\n");
    rest = parts.pop() ?? "";
    read.push(...parts);
    if (until !== undefined && read.some((frame) => frame.includes(until))) return read;
  }
  expect(rest).toBe("");
  return read;
}

const status = async (taskId: string) => result(nekte("nekte.task.status", { task_id: taskId }));

/** Tasks that the platform has, to see that nothing was stored. */
async function countTasks() {
  return (await platform.clients.tasks.listTasks({ pageSize: 1000 })).tasks.length;
}

describe("nekte.discover", () => {
  const HEX = expect.stringMatching(/^[0-9a-f]{8}$/);

  test("at level 0 has id, cat and h only; an id that several agents offer names its agent", async () => {
    expect(await result(nekte("nekte.discover", { level: 0 }))).toEqual({
      agent: "depute",
      caps: [
        { id: "fails", cat: "nlp", h: HEX },
        { id: "long", cat: "nlp", h: HEX },
        { id: "sentiment", cat: "nlp", h: HEX },
        { id: "nlp-worker/shared", cat: "nlp", h: HEX },
        { id: "other/shared", cat: "nlp", h: HEX },
      ],
    });
  });

  test("of one agent is as if it were a server of its own", async () => {
    expect(await result(nekte("nekte.discover", { level: 0 }, "/nekte/other"))).toEqual({
      agent: "other",
      v: "1.2.0",
      caps: [{ id: "shared", cat: "nlp", h: HEX }],
    });
  });

  test("at level 1 adds what it does and costs", async () => {
    const found = await result(nekte("nekte.discover", { level: 1, filter: { id: "sentiment" } }));
    expect(found.caps).toEqual([
      { id: "sentiment", cat: "nlp", h: HEX, desc: "does sentiment", cost: { avg_ms: 200 } },
    ]);
  });

  test("at level 2 adds the schemas", async () => {
    const found = await result(nekte("nekte.discover", { level: 2, filter: { query: "sentiment" } }));
    expect(found.caps).toEqual([
      {
        id: "sentiment",
        cat: "nlp",
        h: HEX,
        desc: "does sentiment",
        cost: { avg_ms: 200 },
        input: TEXT,
        output: { type: "object" },
      },
    ]);
  });

  test.each([
    ["an id as it was listed", { id: "other/shared" }, ["other/shared"]],
    ["the first only, and still names its agent", { id: "shared", top_k: 1 }, ["nlp-worker/shared"]],
    ["explicit nulls", { category: null, query: null, id: "long" }, ["long"]],
    ["another category", { category: "vision" }, []],
  ])("filters: %s", async (_, filter, ids) => {
    const found = await result(nekte("nekte.discover", { level: 0, filter }));
    expect(found.caps.map(({ id }: { id: string }) => id)).toEqual(ids);
  });
});

describe("nekte.invoke", () => {
  test("gives the output, and what it took", async () => {
    const answer = await result(nekte("nekte.invoke", { cap: "sentiment", in: { text: "so so" } }));
    expect(answer).toEqual({
      out: { label: "mixed", score: 0.62 },
      resolved_level: "compact",
      meta: { ms: expect.any(Number), tokens_used: 8 },
    });
  });

  test("takes the hash that was discovered, and any longer prefix's first eight digits", async () => {
    const [{ h }] = (await result(nekte("nekte.discover", { level: 0, filter: { id: "sentiment" } }))).caps;
    await result(nekte("nekte.invoke", { cap: "sentiment", h, in: { text: "x" } }));
  });

  test("with an outdated hash brings the present one and the schema", async () => {
    const [schema] = (await result(nekte("nekte.discover", { level: 2, filter: { id: "sentiment" } }))).caps;
    const before = await countTasks();
    expect(
      await error(nekte("nekte.invoke", { cap: "sentiment", h: "00000000", in: { text: "x" } })),
    ).toEqual({
      code: -32001,
      message: "VERSION_MISMATCH",
      data: { current_hash: schema.h, schema },
    });
    expect(await countTasks()).toBe(before);
  });

  test("of one of several agents names it", async () => {
    expect((await result(nekte("nekte.invoke", { cap: "other/shared", in: {} }))).out).toEqual({ other: {} });
    expect((await result(nekte("nekte.invoke", { cap: "shared", in: {} }, "/nekte/other"))).out).toEqual({
      other: {},
    });
    const ambiguous = await error(nekte("nekte.invoke", { cap: "shared", in: {} }));
    expect(ambiguous).toMatchObject({
      code: -32602,
      data: { reason: "CAPABILITY_AMBIGUOUS", metadata: { candidates: "nlp-worker/shared,other/shared" } },
    });
  });

  test.each([
    ["full", 2000, "full", 4000],
    ["full", 100, "compact", 200],
    ["full", 20, "minimal", undefined],
  ])("steps down from %s within %i tokens to %s", async (detail_level, max_tokens, level, length) => {
    const budget = { max_tokens, detail_level };
    const answer = await result(nekte("nekte.invoke", { cap: "long", in: {}, budget }));
    expect(answer.resolved_level).toBe(level);
    expect(answer.out).toEqual(length === undefined ? "x".repeat(40) : { text: "x".repeat(length) });
  });

  test("says how much is needed when nothing fits", async () => {
    const budget = { max_tokens: 9, detail_level: "full" };
    expect(await error(nekte("nekte.invoke", { cap: "long", in: {}, budget }))).toMatchObject({
      code: -32003,
      message: "BUDGET_EXCEEDED",
      data: { needed: 10, allowed: 9 },
    });
  });

  test("that fails says the worker's reason", async () => {
    expect(await error(nekte("nekte.invoke", { cap: "fails", in: {} }))).toEqual({
      code: -32007,
      message: "TASK_FAILED",
      data: { reason: "TASK_FAILED", detail: "there is no lexicon", metadata: { failure: "NO_LEXICON" } },
    });
  });
});

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
      `id: 2\nevent: status_change\ndata: {"task_id":"${id}","from":"pending","to":"accepted"}\n\n` +
        `id: 3\nevent: status_change\ndata: {"task_id":"${id}","from":"accepted","to":"running"}\n\n` +
        `id: 4\nevent: progress\ndata: {"processed":1,"total":2,"message":"half"}\n\n` +
        `id: 5\nevent: partial\ndata: {"out":{"so":"far"},"resolved_level":"compact"}\n\n` +
        `id: 6\nevent: complete\ndata: {"task_id":"${id}","out":{"minimal":"done","compact":{"got":{"reviews":3}}},` +
        `"meta":{"ms":1,"tokens_used":6},"status":"completed"}\n\n`,
    );
    const task = await platform.clients.tasks.getTask({ name: { case: "externalId", value: id } });
    expect(task.task).toMatchObject({
      agentId: "nlp-worker",
      capabilityId: "",
      description: "Analyze sentiment of 3 reviews",
      limits: { total: { seconds: 20n } },
      status: TaskStatus.COMPLETED,
    });
  });

  test("losing the stream does not stop the task; Last-Event-ID brings the rest", async () => {
    const params = work("wait");
    const { id } = params.task;
    const leaving = new AbortController();
    const first = await fetch(`${platform.url}/nekte/nlp-worker`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call("nekte.delegate", params)),
      signal: leaving.signal,
    });
    await frames(first, "event: partial");
    leaving.abort();
    expect(await status(id)).toMatchObject({ status: "running", progress: { processed: 1, total: 2 } });
    const again = await platform.post("/nekte/nlp-worker", call("nekte.delegate", params), {
      "last-event-id": "4",
    });
    held.get(id)?.();
    const rest = await frames(again);
    expect(rest.map((frame) => frame.split("\n", 2))).toEqual([
      ["id: 5", "event: partial"],
      ["id: 6", "event: complete"],
    ]);
    const all = await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    expect(all.slice(-2)).toEqual(rest);
    const beyond = await platform.post("/nekte/nlp-worker", call("nekte.delegate", params), {
      "last-event-id": "6",
    });
    expect(await frames(beyond)).toEqual([]);
  });

  test("the same id with another body is refused, before any stream", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const other = { ...params, task: { ...params.task, desc: "something else" } };
    expect(await error(nekte("nekte.delegate", other, "/nekte/nlp-worker"))).toMatchObject({
      code: -32602,
      data: { reason: "TASK_ID_TAKEN" },
    });
  });

  test("a refusal is an event for who says that it reads events", async () => {
    const params = work();
    const post = (body: object, accept: string) =>
      platform.post("/nekte/nlp-worker", call("nekte.delegate", body), { accept });
    const stream = "application/json, text/event-stream;q=0.9";
    await frames(await post(params, stream));
    const other = { ...params, task: { ...params.task, desc: "something else" } };
    const { id } = params.task;
    expect(await frames(await post(other, stream))).toEqual([
      `event: error\ndata: {"task_id":"${id}","code":-32602,"message":"the external id is that of another task"}`,
    ]);
    expect((await frames(await post({ task: { id } }, "text/event-stream")))[0]).toContain('"code":-32602');
    expect(await error(post(other, "application/json"))).toMatchObject({ code: -32602 });
  });

  test("out of time ends with the family's code", async () => {
    const stream = await frames(
      await nekte("nekte.delegate", work("wait", { timeout_ms: 300 }), "/nekte/nlp-worker"),
    );
    expect(stream.at(-1)).toMatch(/event: error\ndata: \{"task_id":"task-\d+","code":-32006,/);
  });

  test("as a notification is done without anybody who watches", async () => {
    const params = work();
    const response = await platform.post("/nekte/nlp-worker", notification("nekte.delegate", params));
    expect(response.status).toBe(204);
    const { task } = await platform.clients.tasks.getTask({
      name: { case: "externalId", value: params.task.id },
    });
    for await (const _ of platform.clients.tasks.watchTask({ taskId: task?.id ?? "" }));
    expect(await status(params.task.id)).toMatchObject({ status: "completed" });
  });

  test("a context with a scope is for capabilities, and free work is none", async () => {
    const params = work();
    const scoped = { ...params, context: { ...params.context, scope: ["sentiment"] } };
    const before = await countTasks();
    expect(await error(nekte("nekte.delegate", scoped, "/nekte/nlp-worker"))).toMatchObject({
      code: -32005,
      message: "CONTEXT_PERMISSION_DENIED",
    });
    expect(await countTasks()).toBe(before);
  });

  test.each([true, false])("a context is the input only where it may be persisted (%s)", async (persist) => {
    const params = work();
    const permissions = { ...CONTEXT.permissions, persist };
    const context = { ...params.context, permissions };
    const stream = await frames(await nekte("nekte.delegate", { ...params, context }, "/nekte/nlp-worker"));
    expect(stream.at(-1)).toContain('"compact":{"got":{"reviews":3}}');
    const { task } = await platform.clients.tasks.getTask({
      name: { case: "externalId", value: params.task.id },
    });
    expect(task?.input !== undefined).toBe(persist);
  });

  test("a context that may not be persisted never reaches the disk", async () => {
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

  test("is taken up again after its context is gone", async () => {
    const params = work("wait");
    const { id } = params.task;
    const context = { ...params.context, id: `context of ${id}`, ttl_s: 1 };
    const post = (headers?: Record<string, string>) =>
      platform.post("/nekte/nlp-worker", call("nekte.delegate", { ...params, context }), headers);
    await frames(await post(), "event: partial");
    const request = call("nekte.context", { action: "request", envelope: { id: context.id } });
    while ((await json(platform.post("/nekte", request))).result?.status !== "not_found");
    const other = { ...params, task: { ...params.task, desc: "other" }, context };
    expect(await error(platform.post("/nekte/nlp-worker", call("nekte.delegate", other)))).toMatchObject({
      code: -32602,
      data: { reason: "TASK_ID_TAKEN" },
    });
    const again = frames(await post({ "last-event-id": "4" }));
    held.get(id)?.();
    expect((await again).map((frame) => frame.split("\n", 2))).toEqual([
      ["id: 5", "event: partial"],
      ["id: 6", "event: complete"],
    ]);
  });

  test("that named a context is taken up again after the context was taken back", async () => {
    const shared = { ...CONTEXT, id: "taken-back", data: { shared: true } };
    await result(nekte("nekte.context", { envelope: shared }));
    const context = { ...CONTEXT, id: shared.id, data: null, compression: "reference" };
    const params = { ...work(), context };
    const post = (body: object, headers?: Record<string, string>) =>
      platform.post("/nekte/nlp-worker", call("nekte.delegate", body), headers);
    const all = await frames(await post(params));
    await result(nekte("nekte.context", { action: "revoke", envelope: { id: shared.id } }));
    expect(await frames(await post(params, { "last-event-id": "5" }))).toEqual(all.slice(-1));
    expect(await error(post(params))).toMatchObject({ code: -32004 });
    const other = { ...params, task: { ...params.task, desc: "other" } };
    expect(await error(post(other, { "last-event-id": "5" }))).toMatchObject({ code: -32004 });
    const none = { ...params, task: { ...params.task, id: "never" } };
    expect(await error(post(none, { "last-event-id": "5" }))).toMatchObject({ code: -32004 });
  });

  test("names a context that was shared before", async () => {
    const shared = { data: { shared: true }, ...CONTEXT, id: "mine" };
    await result(nekte("nekte.context", { envelope: shared }));
    for (const data of [null, {}]) {
      const context = { ...CONTEXT, id: "mine", data, compression: "reference" };
      const params = { ...work(), context };
      const stream = await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
      expect(stream.at(-1)).toContain('"compact":{"got":{"shared":true}}');
    }
    const none = { ...work(), context: { ...CONTEXT, id: "none", data: null, compression: "reference" } };
    expect(await error(nekte("nekte.delegate", none, "/nekte/nlp-worker"))).toMatchObject({
      code: -32053,
      data: { reason: "CONTEXT_NOT_FOUND" },
    });
  });

  test("at /nekte needs an agent of the settings", async () => {
    const refused = await error(nekte("nekte.delegate", work()));
    expect(refused).toMatchObject({ code: -32053, data: { reason: "AGENT_NOT_FOUND" } });
    expect(refused.data.detail).toContain("DEPUTE_NEKTE_DEFAULT_AGENT");
  });
});

describe("nekte.context", () => {
  const DATA = { user_preferences: { lang: "en", tone: "formal" } };
  const share = (more: object = {}, path?: string) =>
    nekte("nekte.context", { envelope: { data: DATA, ...CONTEXT, ...more } }, path);
  const named = (action: string, id: string, more: object = {}) =>
    nekte("nekte.context", { action, envelope: { id, ...more } });

  test.each([true, false])("is shared, read and taken back (persist: %s)", async (persist) => {
    const permissions = { ...CONTEXT.permissions, persist };
    const { id, ...rest } = await result(share({ permissions }));
    expect(rest).toEqual({ status: "stored" });
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect(await result(named("request", id))).toEqual({ id, data: DATA, permissions, ttl_s: 3600 });
    expect(await result(named("revoke", id))).toEqual({ id, status: "revoked" });
    expect(await error(named("request", id))).toMatchObject({ code: -32004, message: "CONTEXT_EXPIRED" });
  });

  test("has the caller's own id, also one that looks like the server's", async () => {
    for (const id of ["own", crypto.randomUUID()]) {
      expect(await result(share({ id }))).toEqual({ id, status: "stored" });
      expect(await result(share({ id }))).toEqual({ id, status: "stored" });
      expect(await result(named("request", id))).toMatchObject({ id, data: DATA });
      expect(await error(share({ id, ttl_s: 1 }))).toMatchObject({
        code: -32602,
        data: { reason: "CONTEXT_ID_TAKEN" },
      });
    }
  });

  test("is for the capabilities of its scope", async () => {
    const { id } = await result(share({ scope: ["sentiment", "summarize"] }));
    expect(await result(named("request", id, { scope: ["sentiment"] }))).toMatchObject({ data: DATA });
    for (const more of [{}, { scope: ["shared"] }]) {
      expect(await error(named("request", id, more))).toMatchObject({ code: -32005 });
    }
  });

  test.each(["request", "revoke"])("%s of what is not there says so", async (action) => {
    for (const id of ["never", crypto.randomUUID()]) {
      expect(await result(named(action, id))).toEqual({ id, status: "not_found" });
    }
    expect(await error(nekte("nekte.context", { action, envelope: {} }))).toMatchObject({ code: -32602 });
  });

  test("is the caller's, and the addressed agent's", async () => {
    const holder = () => ({ engine, keypair: generateKeypair(engine), publicUrl: platform.url });
    const [alice, eve, bob] = [holder(), holder(), holder()];
    await introduce(platform, "reader", [], bob.keypair.principal.id);
    const ask = (by: ReturnType<typeof holder>, params: object, path = "/nekte") =>
      result(platform.post(path, call("nekte.context", params), holderHeaders(by, path)));
    const { id } = await ask(alice, { envelope: { data: DATA, ...CONTEXT } }, "/nekte/reader");
    const request = { action: "request", envelope: { id } };
    expect(await ask(bob, request)).toMatchObject({ data: DATA });
    expect(await ask(eve, request)).toEqual({ id, status: "not_found" });
    const context = { ...CONTEXT, id, data: null, compression: "reference" };
    const path = "/nekte/nlp-worker";
    const post = (by: ReturnType<typeof holder>) =>
      platform.post(path, call("nekte.delegate", { ...work(), context }), holderHeaders(by, path));
    expect((await frames(await post(alice))).at(-1)).toContain('{"got":{"user_preferences"');
    // A reader may not forward it.
    expect(await error(post(bob))).toMatchObject({ code: -32005 });
    expect(await error(post(eve))).toMatchObject({ data: { reason: "CONTEXT_NOT_FOUND" } });
  });

  test.each([
    ["no envelope", {}, "/envelope"],
    ["another action", { action: "steal", envelope: { data: 1, ...CONTEXT } }, "/action"],
    ["no time", { envelope: { data: 1, permissions: CONTEXT.permissions } }, "/envelope/ttl_s"],
    ["too long a time", { envelope: { data: 1, ...CONTEXT, ttl_s: 2_592_001 } }, "/envelope/ttl_s"],
  ])("%s is refused", async (_, params, path) => {
    const refused = await error(nekte("nekte.context", params));
    expect(refused).toMatchObject({ code: -32602, data: { violations: [{ path }] } });
  });
});

describe("nekte.verify", () => {
  const HASH = expect.stringMatching(/^sha256:[0-9a-f]{64}$/);
  const verify = (taskId: string, params: object) => nekte("nekte.verify", { task_id: taskId, ...params });
  const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
  // Its output is {"got":{"reviews":3}}, in short "done".
  let id = "";
  beforeAll(async () => {
    const params = lasting(work());
    id = params.task.id;
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
  });

  test("recomputes the hash and compares it, of every form that the worker gave", async () => {
    const whole = sha256('{"got":{"reviews":3}}');
    for (const result_hash of [whole, `sha256:${whole}`, whole.slice(0, 12), whole.toUpperCase()]) {
      const params = { result_hash, verification_type: "deterministic" };
      expect(await result(verify(id, params))).toEqual({
        task_id: id,
        status: "verified",
        hash: `sha256:${whole}`,
        hash_valid: true,
      });
    }
    const short = sha256('"done"');
    expect(await result(verify(id, { checks: ["hash"], result_hash: short }))).toMatchObject({
      hash: `sha256:${short}`,
      hash_valid: true,
    });
  });

  test("says which check failed", async () => {
    const checks = ["source"];
    expect(await error(verify(id, { result_hash: "abc123def456", checks }))).toEqual({
      code: -32008,
      message: "VERIFICATION_FAILED",
      data: {
        reason: "VERIFICATION_FAILED",
        detail: expect.any(String),
        metadata: { task: id, checks: "hash" },
        task_id: id,
        checks: ["hash"],
        hash: HASH,
        hash_valid: false,
      },
    });
  });

  test("without a hash to compare claims nothing", async () => {
    const hash = { task_id: id, hash: HASH };
    expect(await result(verify(id, { verification_type: "deterministic" }))).toEqual(hash);
    expect(await result(verify(id, { checks: ["hash"] }))).toEqual(hash);
  });

  test("shows an input with its output, and who made it", async () => {
    expect(await result(verify(id, { checks: ["sample", "source"] }))).toEqual({
      task_id: id,
      sample: { input_sample: { reviews: 3 }, output_sample: { got: { reviews: 3 } } },
      source: { model: "nlp-worker", processed: 1 },
    });
    const budget = { max_tokens: 3, detail_level: "full" };
    expect((await result(verify(id, { checks: ["sample"], budget }))).sample).toEqual({
      output_sample: "done",
    });
    expect(
      await error(verify(id, { checks: ["sample"], budget: { ...budget, max_tokens: 0 } })),
    ).toMatchObject({ code: -32602 });
  });

  test.each([
    ["nothing to check", {}, -32602],
    ["another check", { checks: ["taste"] }, -32602],
    ["another type", { verification_type: "guess" }, -32602],
    ["a hash that is none", { result_hash: "abc" }, -32602],
  ])("%s is refused", async (_, params, code) => {
    expect((await error(verify(id, params))).code).toBe(code);
  });

  test("of nobody's task, and of one without a result", async () => {
    const checks = ["hash"];
    expect(await error(verify("never", { checks }))).toMatchObject({ code: -32009 });
    const params = work("wait");
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"), "event: partial");
    expect(await error(verify(params.task.id, { checks }))).toMatchObject({
      code: -32055,
      data: { reason: "TASK_STATE_CONFLICT", metadata: { from: "running" } },
    });
    await result(nekte("nekte.task.cancel", { task_id: params.task.id }));
  });
});

describe("nekte.task", () => {
  test("is cancelled by the caller's own id; the stream says so, and who cancels again is told", async () => {
    const params = work("wait");
    const { id } = params.task;
    const stream = await nekte("nekte.delegate", params, "/nekte/nlp-worker");
    const read = frames(stream);
    while (!held.has(id)) await new Promise((resolve) => setImmediate(resolve));
    const reason = "User requested early stop";
    expect(await result(nekte("nekte.task.cancel", { task_id: id, reason }))).toEqual({
      task_id: id,
      status: "cancelled",
      previous_status: "running",
    });
    expect((await read).at(-1)).toBe(
      `id: 6\nevent: cancelled\ndata: {"task_id":"${id}","reason":"${reason}","previous_status":"running"}`,
    );
    expect(await status(id)).toMatchObject({ status: "cancelled" });
    expect((await result(nekte("nekte.task.cancel", { task_id: id, reason: null }))).status).toBe(
      "cancelled",
    );
  });

  test("that has ended cannot be cancelled", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const refused = await error(nekte("nekte.task.cancel", { task_id: params.task.id }));
    expect(refused).toMatchObject({ code: -32010, message: "TASK_NOT_CANCELLABLE" });
  });

  test("has its status, with times as the text writes them", async () => {
    const params = work();
    await frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await status(params.task.id)).toEqual({
      task_id: params.task.id,
      status: "completed",
      progress: { processed: 1, total: 2 },
      checkpoint_available: false,
      created_at: time,
      updated_at: time,
    });
  });

  test("that was suspended is resumed from its checkpoint, on the stream that stayed open", async () => {
    const params = work("suspend");
    const { id } = params.task;
    const read = frames(await nekte("nekte.delegate", params, "/nekte/nlp-worker"));
    while ((await status(id)).status !== "suspended") await new Promise((resolve) => setImmediate(resolve));
    expect(await status(id)).toMatchObject({ checkpoint_available: true });
    const budget = { max_tokens: 100, detail_level: "minimal" };
    expect(await result(nekte("nekte.task.resume", { task_id: id, budget }))).toEqual({
      task_id: id,
      status: "running",
      previous_status: "suspended",
    });
    const told = (await read).map((frame) =>
      frame
        .replace(/"ms":\d+/, '"ms":1')
        .split("\n")
        .slice(1),
    );
    expect(told).toEqual([
      ["event: status_change", `data: {"task_id":"${id}","from":"pending","to":"accepted"}`],
      ["event: status_change", `data: {"task_id":"${id}","from":"accepted","to":"running"}`],
      ["event: suspended", `data: {"task_id":"${id}","checkpoint_available":true}`],
      ["event: resumed", `data: {"task_id":"${id}","from_checkpoint":true}`],
      [
        "event: complete",
        `data: {"task_id":"${id}","out":{"minimal":"done"},"meta":{"ms":1,"tokens_used":1},"status":"completed"}`,
      ],
    ]);
    expect(await error(nekte("nekte.task.resume", { task_id: id }))).toMatchObject({
      code: -32011,
      message: "TASK_NOT_RESUMABLE",
    });
  });

  test.each(["nekte.task.status", "nekte.task.cancel", "nekte.task.resume"])(
    "%s of nobody's task",
    async (method) => {
      expect(await error(nekte(method, { task_id: "never" }))).toMatchObject({
        code: -32009,
        message: "TASK_NOT_FOUND",
      });
    },
  );
});

describe("a holder proof", () => {
  const holder = () => ({ engine, keypair: generateKeypair(engine), publicUrl: platform.url });
  const post = (by: ReturnType<typeof holder>, method: string, params: unknown, path = "/nekte/nlp-worker") =>
    platform.post(path, call(method, params), holderHeaders(by, path));

  test("makes its key the delegator, and counts for one call of the wire", async () => {
    const [alice, eve] = [holder(), holder()];
    const params = lasting(work("wait"));
    const { id } = params.task;
    const stream = frames(await post(alice, "nekte.delegate", params));
    while (!held.has(id)) await new Promise((resolve) => setImmediate(resolve));
    expect((await result(post(alice, "nekte.task.status", { task_id: id }))).status).toBe("running");
    expect(await error(post(eve, "nekte.task.status", { task_id: id }))).toMatchObject({ code: -32009 });
    expect(await error(post(eve, "nekte.task.cancel", { task_id: id }))).toMatchObject({ code: -32009 });
    expect((await result(post(alice, "nekte.task.cancel", { task_id: id }))).status).toBe("cancelled");
    expect((await stream).at(-1)).toContain("event: cancelled");
    const { task } = await platform.clients.tasks
      .listTasks(
        { agentId: "nlp-worker" },
        { headers: holderHeaders(alice, "/depute.tasks.v1.TaskService/ListTasks") },
      )
      .then(({ tasks: [task] }) => ({ task }));
    expect(task).toMatchObject({ externalId: id, delegator: alice.keypair.principal.id });
  });

  test("is enough for a context that goes along and may not be persisted", async () => {
    const alice = holder();
    const params = work();
    const told = await frames(await post(alice, "nekte.delegate", params));
    expect(told.at(-1)).toContain('"compact":{"got":{"reviews":3}}');
    // The same again is the same task.
    expect((await frames(await post(alice, "nekte.delegate", params))).at(-1)).toBe(told.at(-1));
  });

  test("is enough for what looks things up besides: a discovery, an outdated hash", async () => {
    const alice = holder();
    const found = await result(
      post(alice, "nekte.discover", { level: 0, filter: { id: "shared" } }, "/nekte"),
    );
    expect(found.caps).toHaveLength(2);
    const stale = { cap: "sentiment", h: "00000000", in: { text: "x" } };
    expect(await error(post(alice, "nekte.invoke", stale, "/nekte"))).toMatchObject({ code: -32001 });
  });

  test.each([
    ["shown twice", (headers: Record<string, string>) => headers, "replayed_proof"],
    ["for another address", () => holderHeaders(holder(), "/nekte"), "invalid_proof"],
    ["that is none", () => ({ dpop: "e30.e30.e30" }), "invalid_proof"],
  ])("%s is denied", async (_, change, denial) => {
    const alice = holder();
    const path = "/nekte/nlp-worker";
    const headers = holderHeaders(alice, path);
    await json(platform.post(path, call("nekte.task.status", { task_id: "none" }), headers));
    const refused = await error(
      platform.post(path, call("nekte.task.status", { task_id: "none" }), change(headers)),
    );
    expect(refused).toMatchObject({ code: -32052, data: { reason: "TOKEN_DENIED", metadata: { denial } } });
  });
});

describe("bad input", () => {
  const ok = () => result(nekte("nekte.discover", { level: 0, filter: { id: "sentiment" } }));
  const delegation = work();

  test.each([
    ["malformed JSON", "{", -32700, undefined],
    ["an unknown method", call("nekte.nothing"), -32601, undefined],
    ["an unknown topic", call("nekte.introspect", { topic: "weather" }), -32602, "/topic"],
    ["no parameters", call("nekte.discover"), -32602, "/level"],
    ["parameters in an array", call("nekte.discover", [0]), -32602, ""],
    ["a level that is a text", call("nekte.discover", { level: "0" }), -32602, "/level"],
    ["a level that does not exist", call("nekte.discover", { level: 3 }), -32602, "/level"],
    ["an unknown member", call("nekte.discover", { level: 0, filters: {} }), -32602, "/filters"],
    ["no input", call("nekte.invoke", { cap: "sentiment" }), -32602, "/in"],
    [
      "an input that does not fit",
      call("nekte.invoke", { cap: "sentiment", in: { text: 1 } }),
      -32602,
      "/in/text",
    ],
    ["a capability that is too long", call("nekte.invoke", { cap: "x".repeat(194), in: {} }), -32602, "/cap"],
    ["an unknown capability", call("nekte.invoke", { cap: "nothing", in: {} }), -32002, undefined],
    ["an unknown agent's capability", call("nekte.invoke", { cap: "nobody/x", in: {} }), -32053, undefined],
    [
      "a budget of nothing",
      call("nekte.invoke", { cap: "long", in: {}, budget: { max_tokens: 0, detail_level: "full" } }),
      -32602,
      "/budget/max_tokens",
    ],
    ["no task", call("nekte.delegate", { context: delegation.context }), -32602, "/task"],
    ["no time", call("nekte.delegate", { task: { id: "t", desc: "x" } }), -32602, "/task/timeout_ms"],
    [
      "a time of nothing",
      call("nekte.delegate", { task: { id: "t", desc: "x", timeout_ms: 0 } }),
      -32602,
      "/task/timeout_ms",
    ],
    [
      "an id that is too long",
      call("nekte.delegate", { task: { id: "x".repeat(129), desc: "x", timeout_ms: 1 } }),
      -32602,
      "/task/id",
    ],
    ["no task id", call("nekte.task.cancel", {}), -32602, "/task_id"],
    [
      "input that nests too deep for the tasks service",
      call("nekte.invoke", { cap: "long", in: nested(35) }),
      -32056,
      undefined,
    ],
  ])("%s", async (_, body, code, path) => {
    const before = await countTasks();
    const refused = await error(platform.post("/nekte", body));
    expect(refused.code).toBe(code);
    if (path !== undefined) expect(refused.data.violations[0].path).toBe(path);
    expect(await countTasks()).toBe(before);
    await ok();
  });

  test.each([["x"], ["-1"], ["1e3"], ["9".repeat(16)]])("Last-Event-ID %s", async (id) => {
    const before = await countTasks();
    const refused = error(
      platform.post("/nekte/nlp-worker", call("nekte.delegate", work()), { "last-event-id": id }),
    );
    expect((await refused).code).toBe(-32602);
    expect(await countTasks()).toBe(before);
  });

  test("delegating in a batch is refused, and begins nothing", async () => {
    const before = await countTasks();
    const batch = [call("nekte.delegate", work(), 1), call("nekte.discover", { level: 0 }, 2)];
    expect(await json(platform.post("/nekte/nlp-worker", batch))).toMatchObject([
      { id: 1, error: { code: -32600 } },
      { id: 2, result: { agent: "nlp-worker" } },
    ]);
    expect(await countTasks()).toBe(before);
  });

  test.each([
    ["text/plain", 415],
    ["application/jsonp", 415],
    ["", 415],
    ["application/json; charset=utf-8", 200],
    ["Application/JSON", 200],
  ])("content type %j is answered %i", async (type, wanted) => {
    const body = Buffer.from(JSON.stringify(call("nekte.discover", { level: 0 })));
    const headers: Record<string, string> = type === "" ? {} : { "content-type": type };
    const response = await fetch(`${platform.url}/nekte`, { method: "POST", headers, body });
    expect(response.status).toBe(wanted);
  });

  test("a body that is too long, said before or seen while it comes", async () => {
    const body = JSON.stringify(call("nekte.invoke", { cap: "long", in: { text: "x".repeat(4_194_304) } }));
    expect(await error(platform.post("/nekte", body), 413)).toMatchObject({ code: -32056 });
    const chunks = new ReadableStream({
      start(controller) {
        for (let at = 0; at < body.length; at += 65_536)
          controller.enqueue(Buffer.from(body.slice(at, at + 65_536)));
        controller.close();
      },
    });
    const streamed = fetch(`${platform.url}/nekte`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: chunks,
      duplex: "half",
    } as RequestInit);
    // The connection may end before all of it was sent.
    const status = await streamed.then((response) => response.status).catch(() => 413);
    expect(status).toBe(413);
    await ok();
  });

  test.each([
    ["GET", "/nekte", 405],
    ["PUT", "/nekte/nlp-worker", 405],
    ["POST", "/.well-known/nekte.json", 405],
    ["POST", "/nekte/a/b", 404],
  ])("%s %s is answered %i", async (method, path, wanted) => {
    expect((await fetch(`${platform.url}${path}`, { method })).status).toBe(wanted);
  });
});

describe("what is published", () => {
  test("a card for all agents, and for each one", async () => {
    const card = await json(fetch(`${platform.url}/.well-known/nekte.json`));
    expect(card).toMatchObject({
      nekte: "0.2.0",
      agent: "depute",
      endpoint: `${platform.url}/nekte`,
      auth: "none",
      budget_support: true,
    });
    expect(card.caps).toContain("other/shared");
    expect(await json(fetch(`${platform.url}/nekte/.well-known/nekte.json`))).toEqual(card);
    expect(await json(fetch(`${platform.url}/nekte/other/.well-known/nekte.json`))).toMatchObject({
      agent: "other",
      endpoint: `${platform.url}/nekte/other`,
      caps: ["shared"],
    });
    await json(fetch(`${platform.url}/nekte/nobody/.well-known/nekte.json`), 404);
  });

  test("a guide in plain text", async () => {
    const response = await fetch(`${platform.url}/api/protocol-guide`);
    expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(response.headers.get("cache-control")).toBe("public, max-age=86400");
    const guide = await response.text();
    for (const word of ["nekte.discover", "nekte.invoke", "nekte.delegate", "nekte.task.cancel", "-32001"]) {
      expect(guide).toContain(word);
    }
    for (const params of [undefined, {}, { topic: "all" }, { topic: null }]) {
      expect(await result(nekte("nekte.introspect", params))).toEqual({ guide });
    }
  });

  test.each([
    ["budget", "max_tokens"],
    ["discovery", "nekte.discover"],
    ["errors", "-32009"],
    ["tasks", "nekte.task.resume"],
  ])("a part of it, on %s", async (topic, word) => {
    const { guide } = await result(nekte("nekte.introspect", { topic }));
    expect(guide).toContain(word);
    const whole = await (await fetch(`${platform.url}/api/protocol-guide`)).text();
    expect(whole.length).toBeGreaterThan(guide.length);
    expect(whole).toContain(guide);
  });
});

/** What settings change. */
describe("settings", () => {
  test("a default agent, times as numbers, credentials that are required", async () => {
    const other = await startPlatform(["--nekte-default-agent", "helper", "--nekte-epoch-ms"]);
    try {
      await introduce(other, "helper");
      other.work("helper", async () => ({ output: "ok" }));
      const params = work();
      const stream = await frames(await other.post("/nekte", call("nekte.delegate", params)));
      expect(stream.at(-1)).toContain("event: complete");
      const told = await result(other.post("/nekte", call("nekte.task.status", { task_id: params.task.id })));
      expect(told).toMatchObject({ created_at: expect.any(Number), updated_at: expect.any(Number) });
    } finally {
      await other.stop();
    }
  });

  test("a caller without credentials is told by HTTP's status where they are required", async () => {
    const closed = await startPlatform(["--auth", "required"]);
    try {
      const response = await closed.post("/nekte", call("nekte.discover", { level: 0 }));
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe("DPoP, Bearer");
      expect(await response.json()).toMatchObject({
        id: 1,
        error: { code: -32050, message: "UNAUTHENTICATED" },
      });
      const alice = { engine, keypair: generateKeypair(engine), publicUrl: closed.url };
      await result(
        closed.post("/nekte", call("nekte.discover", { level: 0 }), holderHeaders(alice, "/nekte")),
      );
      expect(await json(fetch(`${closed.url}/.well-known/nekte.json`))).toMatchObject({
        auth: "bearer",
        caps: [],
      });
    } finally {
      await closed.stop();
    }
  });
});

function nested(levels: number): object {
  let inner: object = {};
  for (let level = 1; level < levels; level++) inner = { a: inner };
  return inner;
}
