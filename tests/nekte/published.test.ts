import { type Client, ConnectError, createClient } from "@connectrpc/connect";
import { WorkSuspension } from "@depute/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedNekte, type Untyped } from "./published-grpc.ts";
import { type NekteError, PythonClient, type ReadEvent, TypeScriptClient } from "./published-http.ts";

let platform: TestPlatform;
let taskCount = 0;

beforeAll(async () => {
  // The published Python client reads times as epoch milliseconds, which this setting enables.
  platform = await startPlatform(["--nekte-epoch-ms", "--nekte-default-agent", "worker"]);
  await introduce(platform, "worker", [
    ["sentiment", { type: "object", required: ["text"] }, { avgMs: 200 }],
    ["echo"],
  ]);
  platform.work("worker", async (input, { task, progress, partial, signal, saved, contexts }) => {
    if (task.capabilityId !== "") return { output: { got: input } };
    if (task.description === "suspend" && saved === undefined) throw new WorkSuspension("later", 1);
    await progress(50, 500, "Processing batch 1");
    await partial({ preliminary_score: 0.72 });
    if (task.description === "wait" && !signal.aborted) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    }
    const data = contexts.map(({ envelope }) => JSON.parse(new TextDecoder().decode(envelope?.data)));
    return { output: { data: data[0] ?? input }, compact: { positive: 0.65 }, minimal: "65% positive" };
  });
});
afterAll(() => platform.stop());

const task = (desc = "Analyze 500 reviews", more: object = {}) => ({
  id: `published-${++taskCount}`,
  desc,
  timeout_ms: 20_000,
  ...more,
});
const context = (persist = false) => ({
  id: `context-${++taskCount}`,
  data: { reviews_url: "s3://bucket/reviews.jsonl" },
  compression: "none",
  permissions: { forward: false, persist, derive: true },
  ttl_s: 3600,
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const item of items) read.push(item);
  return read;
}
const names = (events: readonly ReadEvent[]) => events.map(({ event }) => event);

describe.each(["/nekte", "/nekte/worker", "/nekte/worker/"])(
  "the published TypeScript client at %s",
  (path) => {
    const client = () => new TypeScriptClient(`${platform.url}${path}`);

    test("finds the agent by its card, and caches hashes from then on", async () => {
      const one = client();
      const card = await one.agentCard();
      expect(card).toMatchObject({
        nekte: "0.2.0",
        caps: ["sentiment", "echo"].sort(),
        auth: "none",
        budget_support: true,
      });
      expect(card.instructions).toContain("nekte.introspect");
      await one.discover(0);
      expect(one.hashOf("sentiment")).toMatch(/^[0-9a-f]{8}$/);
      expect(await one.invoke("sentiment", { text: "so so" })).toMatchObject({
        out: { got: { text: "so so" } },
        resolved_level: "compact",
        meta: { tokens_used: 6 },
      });
    });

    test("with an outdated hash gets the current one, and then its result", async () => {
      const one = client();
      await one.agentCard();
      one.remember("sentiment", "00000000");
      expect((await one.invoke("sentiment", { text: "x" })).out).toEqual({ got: { text: "x" } });
      const [{ h }] = (await one.discover(0, { id: "sentiment" })).caps;
      expect(one.hashOf("sentiment")).toBe(h);
    });

    test("describes a capability in three levels", async () => {
      const [ref, summary, full] = await Promise.all(
        ([0, 1, 2] as const).map(
          async (level) => (await client().discover(level, { id: "sentiment" })).caps[0],
        ),
      );
      expect(Object.keys(ref)).toEqual(["id", "cat", "h"]);
      expect(summary).toMatchObject({ desc: "does sentiment", cost: { avg_ms: 200 } });
      expect(full).toMatchObject({ input: { required: ["text"] }, output: { type: "object" } });
    });

    test.each([false, true])(
      "delegates, and reads every event of the stream (persist: %s)",
      async (persist) => {
        const events = await all(client().delegate(task(), context(persist)));
        expect(names(events)).toEqual(["progress", "partial", "complete"]);
        expect(events[0]?.data).toEqual({ processed: 50, total: 500, message: "Processing batch 1" });
        expect(events[1]?.data).toEqual({ out: { preliminary_score: 0.72 }, resolved_level: "compact" });
        expect(events[2]?.data).toMatchObject({
          status: "completed",
          out: { minimal: "65% positive", compact: { positive: 0.65 } },
          meta: { tokens_used: 5 },
        });
      },
    );

    test("delegates without a context, reads the status, and verifies the result", async () => {
      const work = task();
      expect(names(await all(client().delegate(work)))).toContain("complete");
      expect(await client().taskStatus(work.id)).toMatchObject({
        task_id: work.id,
        status: "completed",
        progress: { processed: 50, total: 500 },
      });
      const budget = { max_tokens: 500, detail_level: "compact" };
      expect(await client().verify(work.id)).toMatchObject({
        task_id: work.id,
        hash: expect.stringMatching(/^sha256:/),
        sample: { output_sample: { positive: 0.65 } },
        source: { model: "worker", processed: 50 },
      });
      expect(
        await client().call("nekte.verify", { task_id: work.id, checks: ["hash"], budget }),
      ).toHaveProperty("hash");
    });

    test("cancels during the stream", async () => {
      const one = client();
      const work = task("wait");
      const seenEvents: ReadEvent[] = [];
      for await (const event of one.delegate(work)) {
        seenEvents.push(event);
        if (event.event === "partial") await one.cancelTask(work.id, "user requested");
      }
      expect(seenEvents.at(-1)).toEqual({
        event: "cancelled",
        data: { task_id: work.id, reason: "user requested", previous_status: "running" },
      });
      await expect(one.cancelTask(work.id)).rejects.toMatchObject({ code: -32010 });
    });

    test("resumes a suspended task", async () => {
      const one = client();
      const work = task("suspend");
      const seenEvents: ReadEvent[] = [];
      for await (const event of one.delegate(work)) {
        seenEvents.push(event);
        if (event.event !== "suspended") continue;
        expect(await one.resumeTask(work.id, { max_tokens: 100, detail_level: "minimal" })).toEqual({
          task_id: work.id,
          status: "running",
          previous_status: "suspended",
        });
      }
      expect(names(seenEvents)).toEqual(["suspended", "resumed", "progress", "partial", "complete"]);
    });

    test.each([
      ["nekte.task.status", { task_id: "never" }, -32009],
      ["nekte.task.cancel", { task_id: "never", reason: undefined }, -32009],
      ["nekte.task.resume", { task_id: "never", budget: undefined }, -32009],
      ["nekte.invoke", { cap: "nothing", in: {} }, -32002],
      [
        "nekte.invoke",
        { cap: "echo", in: { a: "x".repeat(99) }, budget: { max_tokens: 1, detail_level: "full" } },
        -32003,
      ],
      ["nekte.nothing", {}, -32601],
    ])("gets the code of a refusal: %s %j", async (method, params, code) => {
      const refused = await client()
        .call(method, params)
        .catch((thrown: NekteError) => thrown);
      expect(refused).toMatchObject({ code });
    });
  },
);

describe("the published Python client, with times as numbers", () => {
  const client = () => new PythonClient(`${platform.url}/nekte/worker`);

  test("reads the card, discovers with explicit nulls, invokes", async () => {
    expect(await client().agentCard()).toMatchObject({ agent: "worker", caps: ["echo", "sentiment"] });
    for (const level of [0, 1, 2] as const) {
      for (const filter of [null, { id: "sentiment" }, { category: "nlp", query: null, top_k: null }]) {
        expect((await client().discover(level, filter)).caps.length).toBeGreaterThan(0);
      }
    }
    const [{ h }] = (await client().discover(0, { id: "sentiment" })).caps;
    expect((await client().invoke("sentiment", { text: "x" }, h)).out).toEqual({ got: { text: "x" } });
  });

  test.each([
    ["no context", null],
    ["a context", { ...context(), budget_hint: null }],
    ["a lasting one", { ...context(true), budget_hint: null }],
  ])("delegates with %s", async (_, givenBudget) => {
    const budget = { max_tokens: 500, detail_level: "compact" };
    const events = await client().delegate({ ...task(), budget }, givenBudget);
    expect(names(events)).toEqual(["progress", "partial", "complete"]);
  });

  test("reads a task's status, and cancels with null as the reason", async () => {
    const work = { ...task("wait"), budget: { max_tokens: 500, detail_level: "compact" } };
    const read = client().delegate(work);
    const running = async () =>
      (
        await client()
          .taskStatus(work.id)
          .catch(() => undefined)
      )?.status === "running";
    while (!(await running()));
    expect((await client().taskStatus(work.id)).created_at).toBeGreaterThan(1.7e12);
    expect(await client().cancelTask(work.id)).toMatchObject({
      status: "cancelled",
      previous_status: "running",
    });
    expect((await read).at(-1)).toMatchObject({ event: "cancelled", data: { task_id: work.id } });
  });
});

describe("a stock client of the published proto, over gRPC", () => {
  const utf8 = new TextEncoder();
  const bytes = (json: unknown) => utf8.encode(JSON.stringify(json));
  // Parses the JSON of a field of bytes. The parse fails for an absent field, which is empty bytes, as in a stock
  // client.
  const parse = (data: Uint8Array) => JSON.parse(new TextDecoder().decode(data));
  type Calls = Record<string, (request: object) => Promise<Untyped>>;
  const client = () =>
    createClient(PublishedNekte, platform.transport) as Client<typeof PublishedNekte> & Calls;
  const call = (method: string, request: object) =>
    (client() as Calls)[method]?.(request) as Promise<Untyped>;

  test("discovers, invokes, and gets a newer version in the answer", async () => {
    const discovered = await call("discover", { level: 2, filter: { id: "sentiment" } });
    expect(discovered.agent).toBe("depute");
    expect(parse(discovered.schemas[0].inputSchema)).toMatchObject({ required: ["text"] });
    const [{ h }] = (await call("discover", { level: 0, filter: { id: "sentiment" } })).refs;
    const input = bytes({ text: "x" });
    const budget = { maxTokens: 500, detailLevel: "compact" };
    expect(parse((await call("invoke", { cap: "sentiment", h, input, budget })).output)).toEqual({
      got: { text: "x" },
    });
    const outdated = await call("invoke", { cap: "sentiment", h: "00000000", input, budget });
    expect(outdated.error).toMatchObject({ code: -32001, message: "VERSION_MISMATCH", currentHash: h });
  });

  test("delegates, and parses every level of the result", async () => {
    const request = {
      task: {
        id: `published-${++taskCount}`,
        desc: "x",
        timeoutMs: 20_000,
        budget: { maxTokens: 500, detailLevel: "compact" },
      },
      context: {
        id: `context-${taskCount}`,
        data: bytes({ reviews: 3 }),
        compression: "none",
        permissions: { forward: false, persist: false, derive: true },
        ttlS: 3600,
      },
    };
    const stream = (client() as unknown as { delegate(request: object): AsyncIterable<Untyped> }).delegate(
      request,
    );
    const events = (await all(stream)).map(({ event }) => event);
    expect(events.map((event) => event.case)).toEqual(["progress", "partial", "complete"]);
    const { taskId, output, meta } = events.at(-1).value;
    expect(taskId).toBe(request.task.id);
    expect(output.minimal).toBe("65% positive");
    expect([parse(output.compact), parse(output.full)]).toEqual([{ positive: 0.65 }, null]);
    expect(meta.tokensUsed).toBe(5);
    const status = await call("taskStatus", { taskId });
    expect(status).toMatchObject({ status: "completed", progressProcessed: 50, progressTotal: 500 });
    expect(Number(status.createdAt)).toBeGreaterThan(1.7e12);
    const verified = await call("verify", { taskId, checks: ["hash", "sample", "source"] });
    expect(parse(verified.data).hash).toMatch(/^sha256:/);
  });

  test.each([
    ["taskStatus", { taskId: "never" }, 5],
    ["taskCancel", { taskId: "never", reason: "x" }, 5],
    ["taskResume", { taskId: "never" }, 5],
    ["invoke", { cap: "nothing", input: bytes({}) }, 5],
  ])("gets the status of a refusal: %s %j", async (method, request, code) => {
    const refused = await call(method, request).catch((thrown) => ConnectError.from(thrown));
    expect(refused).toMatchObject({ code });
  });
});
