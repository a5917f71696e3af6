import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import {
  type ConnectOptions,
  connect,
  createKey,
  type Depute,
  keyFromSeed,
  metadataOf,
  narrowToken,
  reasonOf,
  seedOf,
  TaskError,
  type TaskHandle,
  type TaskUpdate,
  violationsOf,
  type Work,
  type Worker,
} from "@depute/client";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { selfSigned } from "../nekte/certificate.ts";
import { detourTo } from "./detour.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

const open: { close(): void | Promise<void> }[] = [];
const workers: Worker[] = [];
afterEach(async () => {
  for (const worker of workers.splice(0)) await worker.stop(0);
  for (const each of open.splice(0).reverse()) await each.close();
});

function client(options: ConnectOptions = {}, url = platform.url): Depute {
  const connected = connect(url, options);
  open.push(connected);
  return connected;
}

let agentId = "";
let agents = 0;
beforeEach(() => {
  agentId = `sdk-${++agents}`;
});

/** Registers the test's agent, and starts a worker for it. */
async function employ(work: Work, depute = client()): Promise<Depute> {
  await depute.register({ id: agentId, capabilities: [{ id: "say", input: { type: "object" } }] });
  workers.push(depute.work({ agentId, work }));
  return depute;
}

async function updatesOf(task: TaskHandle, onUpdate = (_: TaskUpdate) => {}): Promise<TaskUpdate[]> {
  const updates: TaskUpdate[] = [];
  for await (const update of task.events()) {
    updates.push(update);
    onUpdate(update);
  }
  return updates;
}

const typesOf = (updates: TaskUpdate[]) => updates.map(({ type }) => type);

describe("a delegated task", () => {
  test("has events and a result of plain values", async () => {
    const depute = await employ(async (input, { progress }) => {
      await progress(1, 2, "half");
      return { output: { said: input }, minimal: "said" };
    });
    const task = await depute.delegate({ agentId, capabilityId: "say", input: { text: "hello" } });
    const updates = await updatesOf(task);
    expect(updates.map(({ sequence }) => sequence)).toEqual(updates.map((_, i) => i + 1));
    const progress = updates.find(({ type }) => type === "progress");
    expect(progress).toMatchObject({ data: { processed: 1, total: 2, message: "half" }, status: "RUNNING" });
    expect(updates.at(-1)).toMatchObject({
      type: "completed",
      data: { output: { full: { said: { text: "hello" } } } },
    });
    expect(updates.at(-1)?.time).toBeInstanceOf(Date);
    expect(await task.result()).toMatchObject({ output: { said: { text: "hello" } }, minimal: "said" });
    expect(await depute.task(task.id).result()).toEqual(await task.result());
  });

  test("that fails or is cancelled ends with a TaskError", async () => {
    const depute = await employ(async (_, { signal }) => {
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      return { output: null };
    });
    const task = await depute.delegate({ agentId, capabilityId: "say", input: {} });
    await updatesOf(task, ({ type }) => {
      if (type === "started") void task.cancel("enough").catch(() => {});
    });
    const error = await task.result().catch((error: unknown) => error);
    expect(error).toBeInstanceOf(TaskError);
    expect(error).toMatchObject({ status: "CANCELLED" });
    expect(reasonOf(error)).toBe((error as TaskError).reason);
  });

  test("is suspended, resumed from its checkpoint, and asks a question", async () => {
    const depute = await employ(async (_, { saved, checkpoint, interrupting, ask }) => {
      if (saved === undefined) {
        await checkpoint({ step: 1 });
        await new Promise<void>((resolve) => interrupting.addEventListener("abort", () => resolve()));
        await checkpoint({ step: 2 });
      }
      return { output: { saved: saved ?? null, answer: await ask("Which colour?") } };
    });
    const task = await depute.delegate({ agentId, capabilityId: "say", input: {} });
    const steps: Promise<void>[] = [];
    const updates = await updatesOf(task, ({ type }) => {
      if (type === "checkpointed" && steps.length === 0) steps.push(task.suspend("lunch"));
      if (type === "suspended") steps.push(task.resume());
      if (type === "inputRequired") steps.push(task.provideInput("blue"));
    });
    await Promise.all(steps);
    expect(typesOf(updates)).toEqual(
      expect.arrayContaining([
        "suspensionRequested",
        "suspended",
        "resumed",
        "inputRequired",
        "inputProvided",
      ]),
    );
    expect((await task.result()).output).toEqual({ saved: { step: 2 }, answer: "blue" });
  });
});

describe("over a bad connection", () => {
  test("events continue after the last received one, with none missing and none repeated", async () => {
    const detour = await detourTo(platform.url);
    open.push(detour);
    const goOn = Promise.withResolvers<void>();
    await employ(async (_, { progress }) => {
      for (let i = 1; i <= 3; i++) await progress(i, 6);
      await goOn.promise;
      for (let i = 4; i <= 6; i++) await progress(i, 6);
      return { output: "done" };
    });
    const task = await client({}, detour.url).delegate({ agentId, capabilityId: "say", input: {} });
    let cuts = 0;
    const updates = await updatesOf(task, ({ type, data }) => {
      if (type !== "progress") return;
      cuts += detour.cut();
      if (data.processed === 3) goOn.resolve();
    });
    expect(cuts).toBeGreaterThanOrEqual(2);
    expect(updates.map(({ sequence }) => sequence)).toEqual(updates.map((_, i) => i + 1));
    expect(typesOf(updates).filter((type) => type === "progress")).toHaveLength(6);
    expect((await task.result()).output).toBe("done");
  });

  test.each<[string, ConnectOptions]>([
    ["over Connect", {}],
    ["over gRPC", { protocol: "grpc" }],
  ])(
    "a worker keeps its task, %s",
    async (_, options) => {
      const detour = await detourTo(platform.url);
      open.push(detour);
      const reports = 100;
      let cuts = 0;
      await employ(
        async (_, { progress }) => {
          for (let i = 1; i <= reports; i++) {
            const report = progress(i, reports);
            // A cut meets the report on its way, while it is processed, or on the way back.
            if (i % 10 === 0) setTimeout(() => (cuts += detour.cut()), i % 7);
            await report;
          }
          return { output: { reports } };
        },
        client(options, detour.url),
      );
      // With a single attempt, a lost lease would fail the task.
      const draft = { agentId, capabilityId: "say", input: {}, retry: { maxAttempts: 1 } };
      const task = await client().delegate(draft);
      expect((await task.result()).output).toEqual({ reports });
      expect(cuts).toBeGreaterThan(5);
      const types = typesOf(await updatesOf(task));
      expect(types.filter((type) => type === "progress")).toHaveLength(reports);
    },
    60_000,
  );

  test("a call with a lost answer is repeated under its request id, and counts once", async () => {
    const ids: string[] = [];
    const loses: Interceptor = (next) => async (request) => {
      const answer = await next(request);
      if (request.method.name !== "CreateTask") return answer;
      ids.push((request.message as unknown as { requestId: string }).requestId);
      if (ids.length < 3) throw new ConnectError("the connection broke", Code.Unavailable);
      return answer;
    };
    const depute = client({ interceptors: [loses] });
    await depute.register({ id: agentId });
    const task = await depute.delegate({ agentId, description: "once" });
    expect(new Set(ids).size).toBe(1);
    expect(ids).toHaveLength(3);
    const { tasks } = await depute.services.tasks.listTasks({ agentId });
    expect(tasks.map(({ id }) => id)).toEqual([task.id]);
  });

  test("an outage beyond the limit is reported", async () => {
    const depute = client({ maxOutageMs: 0 }, "http://127.0.0.1:1");
    const error = await depute.delegate({ agentId, description: "x" }).catch((error: unknown) => error);
    expect(ConnectError.from(error).code).toBe(Code.Unavailable);
    expect(reasonOf(error)).toBeUndefined();
  });

  test("TLS options reach the transport", async () => {
    const { cert, key } = selfSigned("localhost");
    const detour = await detourTo(platform.url, { cert, key });
    open.push(detour);
    const trusting = client({ tls: { ca: cert } }, detour.url);
    await trusting.register({ id: agentId });
    const distrusting = client({ maxOutageMs: 0 }, detour.url);
    await expect(distrusting.task("t").read()).rejects.toThrow(/certificate/);
  });
});

test("refusals have typed reasons, their metadata and the fields at fault", async () => {
  const depute = client();
  const missing = await depute
    .task("t")
    .read()
    .catch((error: unknown) => error);
  expect(reasonOf(missing)).toBe("TASK_NOT_FOUND");
  expect(metadataOf(missing)).toMatchObject({ task: "t" });
  const invalid = await depute.delegate({}).catch((error: unknown) => error);
  expect(reasonOf(invalid)).toBe("INVALID_REQUEST");
  expect(violationsOf(invalid)).toMatchObject([{ field: "draft", reason: "draft.target" }]);
  expect(reasonOf(new Error("mine"))).toBeUndefined();
});

describe.each([
  ["a proof for each attempt", false],
  ["a holder session", true],
])("with %s", (_, session) => {
  const key = keyFromSeed(seedOf(createKey()));

  async function granted(): Promise<string> {
    const { token } = await client().mint({
      delegatee: key.principal.id,
      capabilities: [{ namespace: "depute:tasks", action: "delegate", resource: `${agentId}/*` }],
      maxBudgetMicrocents: 1_000_000,
    });
    return token;
  }

  test("a token allows its capabilities, and an offline attenuation allows less", async () => {
    await employ(async (input) => ({ output: input }));
    const token = await granted();
    const proofs: (string | null)[] = [];
    const listens: Interceptor = (next) => (request) => {
      proofs.push(request.header.get("dpop"));
      return next(request);
    };
    const holder = client({ key, token, session, interceptors: [listens] });
    const task = await holder.delegate({ agentId, capabilityId: "say", input: { n: 1 } });
    expect((await task.result()).output).toEqual({ n: 1 });
    expect(new Set(proofs).size).toBe(proofs.length);

    const next = createKey();
    const resource = `${agentId}/other`;
    const narrowed = narrowToken(token, key, {
      delegatee: next.principal.id,
      capabilities: [{ namespace: "depute:tasks", action: "delegate", resource }],
      lifetimeMs: 60_000,
    });
    const lesser = client({ key: next, token: narrowed.token, session });
    const denied = await lesser.delegate({ agentId, capabilityId: "say" }).catch((error: unknown) => error);
    expect(reasonOf(denied)).toBe("TOKEN_DENIED");
    expect(() => narrowToken(token, next, { delegatee: key.principal.id })).toThrow(/attenuat/i);
  });

  test("a worker proves its key, and the platform knows the delegator", async () => {
    const worker = client({ key, session });
    await worker.register({ id: agentId, principal: key.principal.id, capabilities: [{ id: "say" }] });
    workers.push(worker.work({ agentId, work: async () => ({ output: "proven" }) }));
    const delegator = client({ key, session });
    const task = await delegator.delegate({ agentId, capabilityId: "say", input: {} });
    expect((await task.result()).output).toBe("proven");
    expect(await task.read()).toMatchObject({ delegator: key.principal.id, status: TaskStatus.COMPLETED });
  });
});

test("an agent's lease is renewed while its worker runs", async () => {
  const depute = client();
  await depute.register({ id: agentId, leaseMs: 1_000 });
  const leaseEnd = async () => {
    const { agent } = await depute.services.agents.getAgent({ agentId });
    return timestampMs(agent?.leaseExpireTime ?? timestampFromMs(0));
  };
  const firstEnd = await leaseEnd();
  workers.push(depute.work({ agentId, work: async () => ({ output: null }) }));
  await expect.poll(leaseEnd, { timeout: 20_000 }).toBeGreaterThan(firstEnd + 1_000);
});

describe("a session that the platform lost is replaced", () => {
  /**
   * Makes a client with a holder session. In the client's first call of a method, the proof names a session
   * that the platform does not have. A restart of the platform has the same effect.
   */
  function forgetful(method: string, protocol: "connect" | "grpc"): { depute: Depute; calls: string[] } {
    const calls: string[] = [];
    const forges: Interceptor = (next) => (request) => {
      const isFirst = request.method.name === method && !calls.includes(method);
      calls.push(request.method.name);
      if (isFirst) request.header.set("dpop", `${"A".repeat(22)}.1.${Date.now()}.${"A".repeat(43)}`);
      return next(request);
    };
    return { depute: client({ key: createKey(), session: true, protocol, interceptors: [forges] }), calls };
  }

  describe.each(["connect", "grpc"] as const)("over %s", (protocol) => {
    test("for a call", async () => {
      const { depute, calls } = forgetful("ListAgents", protocol);
      await depute.services.agents.listAgents({});
      await depute.services.agents.listAgents({});
      expect(calls).toEqual(["ListAgents", "ListAgents", "ListAgents"]);
    });

    test("for a stream, which then has every message", async () => {
      const { depute, calls } = forgetful("WatchTask", protocol);
      await employ(async (input) => ({ output: input }));
      const task = await depute.delegate({ agentId, capabilityId: "say", input: {} });
      const updates = await updatesOf(task);
      expect(updates.map(({ sequence }) => sequence)).toEqual(updates.map((_, index) => index + 1));
      expect(updates.at(-1)?.type).toBe("completed");
      expect(calls.filter((name) => name === "WatchTask")).toEqual(["WatchTask", "WatchTask"]);
    });
  });
});

test("options that exclude each other are refused", () => {
  expect(() => connect(platform.url, { secret: "s", key: createKey() })).toThrow(TypeError);
  expect(() => connect(platform.url, { token: "t" })).toThrow(TypeError);
});
