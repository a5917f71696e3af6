import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { PublishedGrpc } from "./foreign-grpc.ts";
import { eventsIn, send } from "./plain-http.ts";

let platform: TestPlatform;
let grpc: PublishedGrpc;
let runs = 0;

const LONG = { text: "x".repeat(400) };

beforeAll(async () => {
  platform = await startPlatform();
  grpc = new PublishedGrpc(platform.url);
  await introduce(platform, "worker", [["long"], ["counted"]]);
  platform.work("worker", async (_, { task, partial }) => {
    runs++;
    if (task.capabilityId === "counted") return { output: { done: true }, tokensUsed: 812 };
    if (task.description === "report") {
      await partial({ so: "far" }, "full");
      await partial({ text: "x".repeat(200) }, "full");
    }
    return { output: LONG, tokensUsed: task.description === "count" ? 99 : 0 };
  });
});
afterAll(async () => {
  grpc.close();
  await platform.stop();
});

let taskCount = 0;
const url = () => `${platform.url}/nekte/worker`;
const task = (desc: string, budget: object) => ({
  id: `budget-${++taskCount}`,
  desc,
  timeout_ms: 20_000,
  budget,
});
const delegate = async (members: object) =>
  eventsIn((await send(url(), call("nekte.delegate", { task: members }))).text);
const invoke = async (params: object) =>
  JSON.parse((await send(url(), call("nekte.invoke", { in: {}, ...params }))).text);

const COMPACT = { max_tokens: 120, detail_level: "compact" };
const SMALL = { max_tokens: 20, detail_level: "compact" };
const TINY = { max_tokens: 2, detail_level: "minimal" };

describe("partial results", () => {
  test("stay within the budget and the level of detail, over HTTP and gRPC", async () => {
    const events = await delegate(task("report", SMALL));
    expect(events.map(({ event }) => event)).toEqual(["partial", "error"]);
    // The worker marks the partial result as full, but the caller asked for compact.
    expect(events[0]?.data).toEqual({ out: { so: "far" }, resolved_level: "compact" });
    expect(events[1]?.data).toMatchObject({ code: -32003 });
    const answered = await grpc.delegate({ task: task("report", SMALL) }, { "nekte-agent": "worker" });
    expect(answered.map(({ event }) => event)).toEqual(["partial", "error"]);
    expect(answered[0].partial.resolved_level).toBe("compact");
  });

  test("are all sent if the budget has room", async () => {
    const events = await delegate(task("report", COMPACT));
    expect(events.map(({ event }) => event)).toEqual(["partial", "partial", "complete"]);
  });
});

describe("tokens used", () => {
  test("are the worker's count if it states one, else the estimate", async () => {
    expect((await delegate(task("count", COMPACT))).at(-1)?.data.meta.tokens_used).toBe(99);
    expect((await delegate(task("x", COMPACT))).at(-1)?.data.meta.tokens_used).toBe(103);
    expect((await invoke({ cap: "counted" })).result.meta.tokens_used).toBe(812);
  });
});

describe("a result that exceeded the budget", () => {
  test("of an invocation is returned by a larger budget under the id of the error, without another run", async () => {
    const before = runs;
    const { error } = await invoke({ cap: "long", budget: TINY });
    expect(error).toMatchObject({ code: -32003, data: { needed: 103, allowed: 2 } });
    const task_id: string = error.data.task_id;
    const again = await invoke({ cap: "long", budget: COMPACT, task_id });
    expect(again.result).toMatchObject({ out: LONG, meta: { task_id } });
    expect(runs).toBe(before + 1);
  });

  test("of a delegation is returned by a larger budget under the task's id, without another run", async () => {
    const before = runs;
    const small = task("x", TINY);
    expect((await delegate(small)).at(-1)?.data).toMatchObject({ task_id: small.id, code: -32003 });
    const larger = { ...small, budget: COMPACT };
    expect((await delegate(larger)).at(-1)?.data).toMatchObject({
      status: "completed",
      out: { compact: LONG },
    });
    expect(runs).toBe(before + 1);
    const other = (await delegate({ ...larger, desc: "other" })).at(-1);
    expect(other?.data).toMatchObject({ code: -32602 });
  });
});
