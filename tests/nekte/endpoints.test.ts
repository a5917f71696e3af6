import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { capability, value } from "../gateway/platform.ts";
import { EndpointScene, kinds, lastOf, until } from "./endpoint-scene.ts";
import {
  type AgentOptions,
  Refused,
  serveGrpc,
  serveHttp,
  TextAgent,
  type TextServer,
} from "./text-server.ts";

const scene = new EndpointScene();
const { register, eventsOf } = scene;

describe.each([
  ["http", serveHttp],
  ["grpc", serveGrpc],
] as const)("an agent with a NEKTE endpoint in the published form, over %s", (_, serve) => {
  let agent: TextAgent;
  let server: TextServer;
  let agentId: string;

  async function begin(options?: AgentOptions) {
    await server?.stop();
    agent = new TextAgent(options);
    server = await serve(agent);
    agentId = await register(server.endpoint);
  }
  beforeEach(() => begin());
  afterAll(() => server.stop());

  test("receives the task in NEKTE's form, and its events are relayed", async () => {
    agent.script = (_params, tell) => {
      tell.raw("status_change", { task_id: _params.task.id, from: "accepted", to: "running" });
      tell.progress(50, 500, "Processing batch 1");
      tell.partial({ preliminary_score: 0.72 });
      tell.complete({ minimal: "65% positive", compact: { positive: 0.65 } });
    };
    const budget = { maxTokens: 500, detailLevel: "compact" };
    const limits = { total: durationFromMs(30_000) };
    const input = value({ reviews_url: "s3://bucket/reviews.jsonl" });
    const events = await eventsOf({ agentId, description: "Analyze 500 reviews", input, budget, limits });
    expect(kinds(events)).toEqual(["created", "accepted", "started", "progress", "partial", "completed"]);
    expect(events[3]?.payload.value).toMatchObject({
      processed: 50,
      total: 500,
      message: "Processing batch 1",
    });
    expect(events[4]?.payload.value).toMatchObject({ output: value({ preliminary_score: 0.72 }) });
    expect(lastOf(events)?.value).toMatchObject({
      output: { full: value({ positive: 0.65 }), minimal: "65% positive" },
    });
    const [params] = agent.callsOf("nekte.delegate");
    expect(params.task).toMatchObject({ id: events[0]?.taskId, desc: "Analyze 500 reviews" });
    expect(params.task.timeout_ms).toBeGreaterThan(25_000);
    expect(params.task.timeout_ms).toBeLessThanOrEqual(30_000);
    expect(params.context).toMatchObject({
      data: { reviews_url: "s3://bucket/reviews.jsonl" },
      permissions: { forward: false, persist: true, derive: true },
    });
  });

  test.each([
    [-32006, "TASK_TIMEOUT"],
    [-32007, "TASK_FAILED"],
    [-32003, "BUDGET_EXCEEDED"],
    [-1, "ENDPOINT_REFUSED"],
  ])("that ends with the code %i makes the task fail as %s, without a retry", async (code, reason) => {
    agent.script = (_params, tell) => tell.fail(code, "no lexicon");
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ case: "failed", value: { reason, message: "no lexicon" } });
    expect(agent.callsOf("nekte.delegate")).toHaveLength(1);
    expect(agent.callsOf("nekte.task.cancel")).toEqual([]);
  });

  test("that reports an internal fault gets the task again, under another id", async () => {
    let tries = 0;
    agent.script = (_params, tell) =>
      ++tries === 1 ? tell.fail(-32603, "oops") : tell.complete({ full: 1 });
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)?.case).toBe("completed");
    const ids = agent.callsOf("nekte.delegate").map(({ task }) => task.id);
    expect(ids).toEqual([events[0]?.taskId, `${events[0]?.taskId}.2`]);
  });

  test("that cancels the task makes it fail", async () => {
    agent.script = ({ task }, tell) => {
      tell.raw("cancelled", { task_id: task.id, reason: "going home", previous_status: "running" });
    };
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ value: { reason: "CANCELLED", message: "going home" } });
  });

  test("can suspend the task, and reports its resumption on the same stream", async () => {
    agent.script = async (_params, tell) => {
      await tell.suspend(true);
      tell.progress(2, 2);
      tell.complete({ full: { done: true } });
    };
    const externalId = crypto.randomUUID();
    const read = eventsOf({ agentId, description: "x", externalId });
    const name = { externalId };
    const status = async () =>
      (await scene.platform.clients.tasks.getTask(name).catch(() => undefined))?.task?.status;
    await until(async () => (await status()) === TaskStatus.SUSPENDED);
    const budget = { maxTokens: 9, detailLevel: "minimal" };
    await scene.platform.clients.tasks.resumeTask({ externalId, budget });
    const events = await read;
    expect(kinds(events).slice(3)).toEqual([
      ...["checkpointed", "suspended", "resumed", "accepted", "started", "progress", "completed"],
    ]);
    expect(events[4]?.payload.value).toMatchObject({ checkpointAvailable: true });
    expect(agent.callsOf("nekte.delegate")).toHaveLength(1);
    expect(agent.callsOf("nekte.task.resume")).toHaveLength(1);
  });

  test("receives the reason of a cancellation", async () => {
    agent.script = (_params, tell) => tell.progress(1, 2);
    const externalId = crypto.randomUUID();
    const read = eventsOf({ agentId, description: "x", externalId });
    await until(() => agent.tasks.size === 1);
    await scene.platform.clients.tasks.cancelTask({ externalId, reason: "User requested early stop" });
    expect(kinds(await read).at(-1)).toBe("cancelled");
    await until(() => agent.callsOf("nekte.task.cancel").length > 0);
    const [task_id] = agent.tasks.keys();
    expect(agent.callsOf("nekte.task.cancel")).toMatchObject([
      { task_id, reason: "User requested early stop" },
    ]);
  });

  test("that is unavailable receives the cancellation later", async () => {
    agent.script = async (_params, tell) => tell.suspend(false);
    const externalId = crypto.randomUUID();
    const name = { externalId };
    await scene.platform.clients.tasks.createTask({
      requestId: externalId,
      draft: { agentId, description: "x", externalId },
    });
    const status = async () => (await scene.platform.clients.tasks.getTask(name)).task?.status;
    await until(async () => (await status()) === TaskStatus.SUSPENDED);
    const answer = agent.answer.bind(agent);
    let isAway = true;
    agent.answer = (method, params) => {
      if (isAway) throw new Error("away");
      return answer(method, params);
    };
    await scene.platform.clients.tasks.cancelTask({ externalId, reason: "no more" });
    await new Promise((resolve) => setTimeout(resolve, 300));
    isAway = false;
    await until(() => agent.callsOf("nekte.task.cancel").length > 0);
    expect([...agent.tasks.values()].map(({ status }) => status)).toEqual(["cancelled"]);
  });

  test("whose stream breaks is asked for the remaining events if it numbers them", async () => {
    await begin({ numbered: true });
    agent.script = async (_params, tell) => {
      tell.progress(1, 3);
      tell.progress(2, 3);
      await new Promise((resolve) => setTimeout(resolve, 100));
      tell.breakOff();
      tell.progress(3, 3);
      tell.complete({ full: 1 });
    };
    const events = await eventsOf({ agentId, description: "x" });
    expect(kinds(events).slice(3)).toEqual(["progress", "progress", "progress", "completed"]);
    expect(agent.callsOf("nekte.task.status")).toHaveLength(1);
    expect(agent.callsOf("nekte.delegate")).toHaveLength(2);
  });

  test("whose stream breaks is asked for its status if it does not number its events", async () => {
    let tries = 0;
    agent.script = async (_params, tell) => {
      tell.progress(1, 1);
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (++tries === 1) tell.breakOff();
      tell.complete({ full: tries });
    };
    const events = await eventsOf({ agentId, description: "x" });
    // The first attempt's result is unavailable, so another attempt follows.
    expect(events.find(({ payload }) => payload.case === "requeued")?.payload.value).toMatchObject({
      cause: { reason: "ENDPOINT_RESULT_LOST" },
    });
    expect(lastOf(events)).toMatchObject({ case: "completed", value: { output: { full: value(2) } } });
  });

  test("that reports another task is ignored, and its work is cancelled", async () => {
    agent.script = (_params, tell) =>
      tell.raw("complete", { task_id: "another", status: "completed", out: { full: 1 } });
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ case: "failed", value: { reason: "ENDPOINT_MALFORMED" } });
    await until(() => agent.callsOf("nekte.task.cancel").length > 0);
  });

  test("that stays silent is bounded by the attempt's limit, and the next attempt is a new task there", async () => {
    agent.script = (params, tell) => {
      if (params.task.id.endsWith(".2")) tell.complete({ full: 1 });
    };
    const limits = { attempt: durationFromMs(300) };
    const events = await eventsOf({ agentId, description: "x", limits });
    expect(kinds(events).slice(3)).toEqual(["requeued", "accepted", "started", "completed"]);
    await until(() => agent.callsOf("nekte.task.cancel").length > 0);
    expect(agent.callsOf("nekte.task.cancel")).toMatchObject([{ task_id: events[0]?.taskId }]);
  });

  test("that is silent for a heartbeat timeout is asked for its status", async () => {
    agent.script = async (_params, tell) => {
      await until(() => agent.callsOf("nekte.task.status").length > 0);
      tell.complete({ full: 1 });
    };
    const limits = { heartbeat: durationFromMs(1000) };
    const events = await eventsOf({ agentId, description: "x", limits });
    expect(lastOf(events)?.case).toBe("completed");
    expect(kinds(events)).toHaveLength(4);
  });

  test("holds at most the number of tasks in the platform's setting", async () => {
    let atOnce = 0;
    let most = 0;
    agent.script = async (_params, tell) => {
      most = Math.max(most, ++atOnce);
      await new Promise((resolve) => setTimeout(resolve, 50));
      atOnce--;
      tell.complete({ full: 1 });
    };
    const all = await Promise.all([1, 2, 3, 4, 5].map(() => eventsOf({ agentId, description: "x" })));
    expect(all.map(lastOf).map((end) => end?.case)).toEqual(Array(5).fill("completed"));
    expect(most).toBe(2);
  });

  describe("for a capability", () => {
    let hash = "";
    beforeEach(async () => {
      const { clients } = scene.platform;
      const capabilities = [capability("sentiment")];
      await clients.agents.publishCapabilities({ requestId: crypto.randomUUID(), agentId, capabilities });
      const resolved = await clients.discovery.resolveCapability({ capabilityId: "sentiment", agentId });
      hash = resolved.capability?.h ?? "";
    });
    const invoked = () => eventsOf({ agentId, capabilityId: "sentiment", input: value({ text: "so so" }) });

    test("is invoked with the version's hash, and its output is the result", async () => {
      agent.invoke = ({ in: given }) => ({ out: { label: "mixed", of: given }, resolved_level: "full" });
      expect(lastOf(await invoked())).toMatchObject({
        case: "completed",
        value: { output: { full: value({ label: "mixed", of: { text: "so so" } }) } },
      });
      expect(agent.callsOf("nekte.invoke")).toMatchObject([
        { cap: "sentiment", h: hash, in: { text: "so so" } },
      ]);
    });

    test("is invoked with the version in the endpoint's own form if that has more digits", async () => {
      const theirs = `${hash}0123456789abcdef`.slice(0, 16);
      agent.invoke = ({ h }) => {
        if (h !== theirs) throw new Refused(-32001, "VERSION_MISMATCH", { current_hash: theirs });
        return { out: { label: "mixed" }, resolved_level: "full" };
      };
      expect(lastOf(await invoked())).toMatchObject({ case: "completed" });
      expect(agent.callsOf("nekte.invoke").map(({ h }) => h)).toEqual([hash, theirs]);
    });

    test("with an output outside the schema is refused, without a retry", async () => {
      agent.invoke = () => ({ out: "mixed" });
      expect(lastOf(await invoked())).toMatchObject({ value: { reason: "OUTPUT_SCHEMA_VIOLATION" } });
      expect(agent.callsOf("nekte.invoke")).toHaveLength(1);
    });
  });
});
