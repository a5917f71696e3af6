import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { connectTo } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { startPlatformProcess } from "@depute/example-sentiment/processes";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { capability, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";
import { type AgentOptions, serveGrpc, serveHttp, TextAgent, type TextServer } from "./text-server.ts";

const folder = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
const credentials = join(folder, "credentials.json");
const FLAGS = ["--tasks-outbound-hosts", "127.0.0.1", "--tasks-push-per-agent", "2"];

let platform: TestPlatform;
let made = 0;

beforeAll(async () => {
  writeFileSync(credentials, JSON.stringify({ "http://127.0.0.1:9999": { bearer: "secret" } }));
  platform = await startPlatform([...FLAGS, "--tasks-outbound-credentials", credentials]);
});
afterAll(async () => {
  await platform.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** An agent that answers at an address. */
async function register(
  endpoint: string,
  { clients }: Pick<TestPlatform, "clients"> = platform,
): Promise<string> {
  const id = `agent-${++made}`;
  await clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, nekte: { endpoint } },
  });
  return id;
}

async function eventsOf(draft: object): Promise<TaskEvent[]> {
  const events: TaskEvent[] = [];
  const requestId = crypto.randomUUID();
  for await (const { event } of platform.clients.tasks.delegateTask({ requestId, draft })) {
    if (event !== undefined) events.push(event);
  }
  return events;
}

const kinds = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);
const lastOf = (events: readonly TaskEvent[]) => events.at(-1)?.payload;

async function until(holds: () => boolean | Promise<boolean>) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const ONCE = { maxAttempts: 1 };

describe.each([
  ["http", serveHttp],
  ["grpc", serveGrpc],
] as const)("an agent that speaks NEKTE as its text has it, over %s", (_, serve) => {
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

  test("is given the work as NEKTE writes it, and what it tells is relayed", async () => {
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
    const [params] = agent.of("nekte.delegate");
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
  ])("that ends with the code %i makes the task fail as %s, and is not asked again", async (code, reason) => {
    agent.script = (_params, tell) => tell.fail(code, "no lexicon");
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ case: "failed", value: { reason, message: "no lexicon" } });
    expect(agent.of("nekte.delegate")).toHaveLength(1);
    expect(agent.of("nekte.task.cancel")).toEqual([]);
  });

  test("whose own fault it is is asked again, under another id", async () => {
    let tries = 0;
    agent.script = (_params, tell) =>
      ++tries === 1 ? tell.fail(-32603, "oops") : tell.complete({ full: 1 });
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)?.case).toBe("completed");
    const ids = agent.of("nekte.delegate").map(({ task }) => task.id);
    expect(ids).toEqual([events[0]?.taskId, `${events[0]?.taskId}.2`]);
  });

  test("that calls the work off by itself makes the task fail", async () => {
    agent.script = ({ task }, tell) => {
      tell.raw("cancelled", { task_id: task.id, reason: "going home", previous_status: "running" });
    };
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ value: { reason: "CANCELLED", message: "going home" } });
  });

  test("suspends the work, and tells how it goes on where it told of it before", async () => {
    agent.script = async (_params, tell) => {
      await tell.suspend(true);
      tell.progress(2, 2);
      tell.complete({ full: { done: true } });
    };
    const externalId = crypto.randomUUID();
    const read = eventsOf({ agentId, description: "x", externalId });
    const name = { case: "externalId", value: externalId } as const;
    const status = async () =>
      (await platform.clients.tasks.getTask({ name }).catch(() => undefined))?.task?.status;
    await until(async () => (await status()) === TaskStatus.SUSPENDED);
    const budget = { maxTokens: 9, detailLevel: "minimal" };
    await platform.clients.tasks.resumeTask({ externalId, budget });
    const events = await read;
    expect(kinds(events).slice(3)).toEqual([
      ...["checkpointed", "suspended", "resumed", "accepted", "started", "progress", "completed"],
    ]);
    expect(events[4]?.payload.value).toMatchObject({ checkpointAvailable: true });
    expect(agent.of("nekte.delegate")).toHaveLength(1);
    expect(agent.of("nekte.task.resume")).toHaveLength(1);
  });

  test("is told why its work is called off", async () => {
    agent.script = (_params, tell) => tell.progress(1, 2);
    const externalId = crypto.randomUUID();
    const read = eventsOf({ agentId, description: "x", externalId });
    await until(() => agent.tasks.size === 1);
    await platform.clients.tasks.cancelTask({ externalId, reason: "User requested early stop" });
    expect(kinds(await read).at(-1)).toBe("cancelled");
    await until(() => agent.of("nekte.task.cancel").length > 0);
    const [task_id] = agent.tasks.keys();
    expect(agent.of("nekte.task.cancel")).toMatchObject([{ task_id, reason: "User requested early stop" }]);
  });

  test("that is away is told of the cancellation when it is back", async () => {
    agent.script = async (_params, tell) => tell.suspend(false);
    const externalId = crypto.randomUUID();
    const name = { case: "externalId", value: externalId } as const;
    await platform.clients.tasks.createTask({
      requestId: externalId,
      draft: { agentId, description: "x", externalId },
    });
    const status = async () => (await platform.clients.tasks.getTask({ name })).task?.status;
    await until(async () => (await status()) === TaskStatus.SUSPENDED);
    const answer = agent.answer.bind(agent);
    let isAway = true;
    agent.answer = (method, params) => {
      if (isAway) throw new Error("away");
      return answer(method, params);
    };
    await platform.clients.tasks.cancelTask({ externalId, reason: "no more" });
    await new Promise((resolve) => setTimeout(resolve, 300));
    isAway = false;
    await until(() => agent.of("nekte.task.cancel").length > 0);
    expect([...agent.tasks.values()].map(({ status }) => status)).toEqual(["cancelled"]);
  });

  test("whose stream breaks off is asked for the rest, where it numbers its events", async () => {
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
    expect(agent.of("nekte.task.status")).toHaveLength(1);
    expect(agent.of("nekte.delegate")).toHaveLength(2);
  });

  test("whose stream breaks off is asked how it stands, where it does not number them", async () => {
    let tries = 0;
    agent.script = async (_params, tell) => {
      tell.progress(1, 1);
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (++tries === 1) tell.breakOff();
      tell.complete({ full: tries });
    };
    const events = await eventsOf({ agentId, description: "x" });
    // What came of the first try cannot be had, so there is another.
    expect(events.find(({ payload }) => payload.case === "requeued")?.payload.value).toMatchObject({
      cause: { reason: "ENDPOINT_RESULT_LOST" },
    });
    expect(lastOf(events)).toMatchObject({ case: "completed", value: { output: { full: value(2) } } });
  });

  test("that tells of another task is believed nothing, and its work is called off", async () => {
    agent.script = (_params, tell) =>
      tell.raw("complete", { task_id: "another", status: "completed", out: { full: 1 } });
    const events = await eventsOf({ agentId, description: "x" });
    expect(lastOf(events)).toMatchObject({ case: "failed", value: { reason: "ENDPOINT_MALFORMED" } });
    await until(() => agent.of("nekte.task.cancel").length > 0);
  });

  test("that says nothing is bounded by the attempt's limit, and the next attempt is a new one there", async () => {
    agent.script = (params, tell) => {
      if (params.task.id.endsWith(".2")) tell.complete({ full: 1 });
    };
    const limits = { attempt: durationFromMs(300) };
    const events = await eventsOf({ agentId, description: "x", limits });
    expect(kinds(events).slice(3)).toEqual(["requeued", "accepted", "started", "completed"]);
    await until(() => agent.of("nekte.task.cancel").length > 0);
    expect(agent.of("nekte.task.cancel")).toMatchObject([{ task_id: events[0]?.taskId }]);
  });

  test("that is silent for as long as a worker may be is asked whether it is still at it", async () => {
    agent.script = async (_params, tell) => {
      await until(() => agent.of("nekte.task.status").length > 0);
      tell.complete({ full: 1 });
    };
    const limits = { heartbeat: durationFromMs(1000) };
    const events = await eventsOf({ agentId, description: "x", limits });
    expect(lastOf(events)?.case).toBe("completed");
    expect(kinds(events)).toHaveLength(4);
  });

  test("is given no more at once than the platform's setting allows", async () => {
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
      const { clients } = platform;
      const capabilities = [capability("sentiment")];
      await clients.agents.publishCapabilities({ requestId: crypto.randomUUID(), agentId, capabilities });
      const found = await clients.discovery.resolveCapability({ capabilityId: "sentiment", agentId });
      hash = found.capability?.h ?? "";
    });
    const invoked = () => eventsOf({ agentId, capabilityId: "sentiment", input: value({ text: "so so" }) });

    test("is invoked with the version's hash, and its output is the result", async () => {
      agent.invoke = ({ in: given }) => ({ out: { label: "mixed", of: given }, resolved_level: "full" });
      expect(lastOf(await invoked())).toMatchObject({
        case: "completed",
        value: { output: { full: value({ label: "mixed", of: { text: "so so" } }) } },
      });
      expect(agent.of("nekte.invoke")).toMatchObject([{ cap: "sentiment", h: hash, in: { text: "so so" } }]);
    });

    test("that does not fit the schema is refused, and is not invoked again", async () => {
      agent.invoke = () => ({ out: "mixed" });
      expect(lastOf(await invoked())).toMatchObject({ value: { reason: "OUTPUT_SCHEMA_VIOLATION" } });
      expect(agent.of("nekte.invoke")).toHaveLength(1);
    });
  });
});

describe("an endpoint that does not behave", () => {
  let server: TextServer | undefined;
  const agent = new TextAgent();
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => boolean;
  async function at(answer: Answer, draft: object = {}) {
    server = await serveHttp(agent);
    server.intercept = answer;
    const agentId = await register(server.endpoint);
    return lastOf(await eventsOf({ agentId, description: "x", retry: ONCE, ...draft }));
  }
  const reply =
    (status: number, headers: Record<string, string>, body: string) =>
    (_: unknown, response: ServerResponse) => {
      response.writeHead(status, headers).end(body);
      return true;
    };
  const JSON_TYPE = { "content-type": "application/json" };
  const SSE_TYPE = { "content-type": "text/event-stream" };

  test.each<[string, Answer, string]>([
    ["a page", reply(200, { "content-type": "text/html" }, "<p>hello"), "ENDPOINT_MALFORMED"],
    ["no JSON", reply(200, JSON_TYPE, "{"), "ENDPOINT_MALFORMED"],
    ["JSON that is no answer", reply(200, JSON_TYPE, "[]"), "ENDPOINT_MALFORMED"],
    ["an error without a code", reply(200, JSON_TYPE, '{"error":"no"}'), "ENDPOINT_MALFORMED"],
    ["an answer that is no stream", reply(200, JSON_TYPE, '{"result":{}}'), "ENDPOINT_MALFORMED"],
    ["a refusal", reply(200, JSON_TYPE, '{"error":{"code":-32602,"message":"no"}}'), "ENDPOINT_REFUSED"],
    ["an event that is no JSON", reply(200, SSE_TYPE, "event: complete\ndata: {\n\n"), "ENDPOINT_MALFORMED"],
    ["an event of a list", reply(200, SSE_TYPE, "event: complete\ndata: []\n\n"), "ENDPOINT_MALFORMED"],
    ["a result without levels", reply(200, SSE_TYPE, "event: complete\ndata: {}\n\n"), "ENDPOINT_MALFORMED"],
    ["no such page", reply(404, JSON_TYPE, "{}"), "ENDPOINT_REFUSED"],
    ["who are you", reply(401, JSON_TYPE, "{}"), "ENDPOINT_REFUSED"],
    ["somewhere else", reply(302, { location: "http://127.0.0.1:1/" }, ""), "ENDPOINT_REFUSED"],
    ["a line without an end", reply(200, SSE_TYPE, `data: ${"x".repeat(5_000_000)}`), "LIMIT_EXCEEDED"],
    [
      "a result too large for a task",
      reply(200, SSE_TYPE, `event: complete\ndata: {"out":{"full":"${"x".repeat(1_100_000)}"}}\n\n`),
      "LIMIT_EXCEEDED",
    ],
  ])("%s: the task fails, and says why", async (_name, answer, reason) => {
    expect(await at(answer)).toMatchObject({ case: "failed", value: { reason } });
  });

  test("one that answers at once, as NEKTE's library does without a handler, is understood", async () => {
    const told =
      (result: object): Answer =>
      (_, response, body) => {
        const { id, params } = JSON.parse(body);
        response.setHeader("content-type", "application/json");
        response.end(JSON.stringify({ jsonrpc: "2.0", id, result: { task_id: params.task.id, ...result } }));
        return true;
      };
    expect(await at(told({ status: "completed", out: { minimal: "m", full: { a: 1 } } }))).toMatchObject({
      case: "completed",
      value: { output: { full: value({ a: 1 }), minimal: "m" } },
    });
    await server?.stop();
    const error = { code: "NO_MATCHING_CAPABILITY", message: "No capability matches the task" };
    expect(await at(told({ status: "failed", error }))).toMatchObject({
      case: "failed",
      value: { reason: "TASK_FAILED", message: error.message },
    });
  });

  test("one whose ids cannot be kept is taken for one that has none", async () => {
    const events = `id: ${"9".repeat(300)}\nevent: progress\ndata: {"processed":1}\n\n`;
    const end = 'id: \u00e9\nevent: complete\ndata: {"out":{"full":1}}\n\n';
    expect(await at(reply(200, SSE_TYPE, events + end))).toMatchObject({ case: "completed" });
  });

  test("one that is just starting is waited for", async () => {
    let calls = 0;
    const answer: Answer = (_, response) => {
      if (++calls > 1) return false;
      response.writeHead(503).end();
      return true;
    };
    expect(await at(answer)).toMatchObject({ case: "completed" });
  });

  test("one that is not there is given up after a while", async () => {
    const agentId = await register("http://127.0.0.1:1/");
    const end = lastOf(await eventsOf({ agentId, description: "x", retry: ONCE }));
    expect(end).toMatchObject({ case: "failed", value: { reason: "ENDPOINT_UNREACHABLE" } });
    const grpc = await register("grpc://127.0.0.1:1");
    expect(lastOf(await eventsOf({ agentId: grpc, description: "x", retry: ONCE }))).toMatchObject({
      value: { reason: "ENDPOINT_UNREACHABLE" },
    });
  }, 30_000);

  test("one that never ends is bounded by the task's time", async () => {
    const answer: Answer = (_, response) => {
      response.writeHead(200, SSE_TYPE);
      const more = setInterval(() => response.write(": still here\n\n"), 5);
      response.once("close", () => clearInterval(more));
      return true;
    };
    expect(await at(answer, { limits: { total: durationFromMs(400) } })).toMatchObject({
      case: "expired",
      value: { reason: "TASK_TIMEOUT" },
    });
  });

  test("one at another host than the settings name is not called", async () => {
    for (const endpoint of [
      "http://localhost:9/",
      "http://10.0.0.1/",
      "ftp://127.0.0.1/",
      "grpc://localhost:9",
    ]) {
      const agentId = await register(endpoint);
      expect(lastOf(await eventsOf({ agentId, description: "x" }))).toMatchObject({
        case: "failed",
        value: { reason: "ADDRESS_NOT_ALLOWED" },
      });
    }
  });

  test("one that has the version by a longer hash is invoked without it; another version is not", async () => {
    server = await serveHttp(agent);
    const agentId = await register(server.endpoint);
    const { clients } = platform;
    const capabilities = [capability("sentiment")];
    await clients.agents.publishCapabilities({ requestId: crypto.randomUUID(), agentId, capabilities });
    const { capability: known } = await clients.discovery.resolveCapability({
      capabilityId: "sentiment",
      agentId,
    });
    let theirs = `${known?.h}00112233`;
    server.intercept = (_, response, body) => {
      const { id, params } = JSON.parse(body);
      const error = { code: -32001, message: "VERSION_MISMATCH", data: { current_hash: theirs } };
      if (params.h === undefined) return false;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
      return true;
    };
    const invoked = () => eventsOf({ agentId, capabilityId: "sentiment", input: value({}) });
    expect(lastOf(await invoked())?.case).toBe("completed");
    theirs = "0011223344556677";
    expect(lastOf(await invoked())).toMatchObject({ case: "failed", value: { reason: "VERSION_MISMATCH" } });
  });

  test("one with credentials of its own is shown them", async () => {
    server = await serveHttp(agent, 9999);
    const seen: (string | undefined)[] = [];
    server.intercept = ({ headers }) => {
      seen.push(headers.authorization);
      return false;
    };
    const agentId = await register(server.endpoint);
    expect(lastOf(await eventsOf({ agentId, description: "x" }))?.case).toBe("completed");
    expect(seen).toEqual(["Bearer secret"]);
  });
});

describe("the platform", () => {
  test("takes up what goes on at endpoints after it was away", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
    const agent = new TextAgent({ numbered: true });
    const server = await serveHttp(agent);
    let goOn = () => {};
    agent.script = async (_, tell) => {
      tell.progress(1, 2);
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      tell.progress(2, 2);
      tell.complete({ full: { done: true } });
    };
    const first = await startPlatform([...FLAGS, "--data-dir", dataDir]);
    try {
      const agentId = await register(server.endpoint, first);
      const draft = { agentId, description: "x", externalId: "outlives" };
      await first.clients.tasks.createTask({ requestId: "1", draft });
      const name = { case: "externalId", value: "outlives" } as const;
      await until(async () => (await first.clients.tasks.getTask({ name })).task?.progress?.processed === 1);
      await first.stop();
      const second = await startPlatform([...FLAGS, "--data-dir", dataDir]);
      try {
        await until(() => agent.of("nekte.delegate").length === 2);
        goOn();
        const { task } = await second.clients.tasks.getTask({ name });
        const events: TaskEvent[] = [];
        for await (const { event } of second.clients.tasks.watchTask({ taskId: task?.id ?? "" })) {
          if (event !== undefined) events.push(event);
        }
        const told = kinds(events).filter((kind) => kind === "progress" || kind === "completed");
        expect(told).toEqual(["progress", "progress", "completed"]);
        expect(agent.of("nekte.task.status").length).toBeGreaterThan(0);
        // One piece of work there, however often it was taken up.
        expect(agent.tasks.size).toBe(1);
      } finally {
        await second.stop();
      }
    } finally {
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("takes them up after it was killed, too, under the same lease", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-endpoints-"));
    const agent = new TextAgent({ numbered: true });
    const server = await serveHttp(agent);
    let goOn = () => {};
    agent.script = async (_, tell) => {
      tell.progress(1, 2);
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      tell.complete({ full: { done: true } });
    };
    const args = ["start", ...FLAGS, "--data-dir", dataDir, "--log-level", "fatal", "--gateway-port", "0"];
    const start = async () => {
      const helper = await startPlatformProcess(args);
      return { helper, clients: connectTo(helper.about) };
    };
    const first = await start();
    try {
      const agentId = await register(server.endpoint, first);
      const draft = { agentId, description: "x", externalId: "outlives" };
      const { task } = await first.clients.tasks.createTask({ requestId: "1", draft });
      const name = { case: "id", value: task?.id ?? "" } as const;
      await until(async () => (await first.clients.tasks.getTask({ name })).task?.progress?.processed === 1);
      await first.helper.stop("SIGKILL");
      const second = await start();
      try {
        await until(() => agent.of("nekte.delegate").length === 2);
        goOn();
        const events: TaskEvent[] = [];
        for await (const { event } of second.clients.tasks.watchTask({ taskId: name.value })) {
          if (event !== undefined) events.push(event);
        }
        expect(kinds(events)).toEqual(["created", "accepted", "started", "progress", "completed"]);
        expect(agent.tasks.size).toBe(1);
      } finally {
        await second.helper.stop();
      }
    } finally {
      await first.helper.stop("SIGKILL");
      await server.stop();
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("calls nobody where no hosts are named: the work waits for a worker", async () => {
    const agent = new TextAgent();
    const server = await serveHttp(agent);
    const closed = await startPlatform();
    try {
      const agentId = await register(server.endpoint, closed);
      closed.work(agentId, async () => ({ output: "by its own worker" }));
      const draft = { agentId, description: "x" };
      const wait = durationFromMs(20_000);
      const { task } = await closed.clients.tasks.createTask({ requestId: "1", draft, wait });
      expect(task?.output?.full).toEqual(value("by its own worker"));
      expect(agent.calls).toEqual([]);
    } finally {
      await closed.stop();
      await server.stop();
    }
  });

  test("calls no agent at its own address: the work waits for a worker", async () => {
    const { port } = new URL(platform.url);
    const addresses = [
      `${platform.url}/nekte/x`,
      platform.url.replace(/^http/, "grpc"),
      `http://localhost:${port}/nekte/x`,
    ];
    for (const endpoint of addresses) {
      const agentId = await register(endpoint);
      platform.work(agentId, async () => ({ output: "by its own worker" }));
      expect(lastOf(await eventsOf({ agentId, description: "x" }))?.case).toBe("completed");
    }
  });

  test("refuses agents at other addresses than its registry's settings allow", async () => {
    const strict = await startPlatform(["--agent-endpoint-origins", "grpc://127.0.0.1:7,http://127.0.0.1:7"]);
    try {
      await register("grpc://127.0.0.1:7/worker", strict);
      await register("http://127.0.0.1:7/nekte", strict);
      for (const endpoint of ["grpc://127.0.0.1:8", "grpcs://127.0.0.1:7", "https://127.0.0.1:7"]) {
        await expect(register(endpoint, strict)).rejects.toThrow("agent.nekte.endpoint");
      }
    } finally {
      await strict.stop();
    }
  });
});
