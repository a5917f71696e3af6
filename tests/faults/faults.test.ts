import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { redisForTests, tcpProxy } from "@depute/bus/testing";
import { connectTo } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { startPlatformProcess, startWorkerProcess } from "@depute/example-sentiment/processes";
import { freePorts } from "depute/ports";
import { afterAll, afterEach, expect, test } from "vitest";
import { CleanUp, collect, dataFolder, draftFor, TEXTS, wholeLog } from "./platform.ts";

const cleanUp = new CleanUp();
afterEach(() => cleanUp.run());

const KEY = { SENTIMENT_SEED: Buffer.alloc(32, 7).toString("base64url") };
const PAUSE_MS = 300;
const sequences = (events: readonly TaskEvent[]) => events.map(({ sequence }) => Number(sequence));
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, n) => first + n);
const kinds = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);
/** Returns the task's output as JSON; undefined if the task did not complete. */
function resultOf(events: readonly TaskEvent[]): unknown {
  const payload = events.at(-1)?.payload;
  const full = payload?.case === "completed" ? payload.value.output?.full : undefined;
  return full === undefined ? undefined : toJson(ValueSchema, full);
}

async function platform(args: readonly string[], env: Record<string, string> = {}) {
  const settings = { DEPUTE_DATA_DIR: await dataFolder(cleanUp), DEPUTE_LOG_LEVEL: "fatal", ...env };
  const start = async () => {
    const started = await startPlatformProcess(args, settings);
    cleanUp.add(() => started.stop());
    return started;
  };
  return { start, started: await start() };
}

async function worker(url: string, pauseMs: number) {
  const started = await startWorkerProcess(url, pauseMs, KEY);
  cleanUp.add(() => started.stop("SIGKILL"));
  return started;
}

test("a killed worker's task gets another worker of the same agent", { timeout: 60_000 }, async () => {
  const { started } = await platform(["start"], { DEPUTE_GATEWAY_PORT: "0" });
  const clients = connectTo(started.about);
  const first = await worker(started.about, PAUSE_MS);
  const watching = collect(
    clients.tasks.delegateTask({ requestId: "take over", draft: draftFor(first.about.agentId) }),
  );
  await watching.progressed(1);
  await first.stop("SIGKILL");
  await worker(started.about, 0);
  await watching.over;

  const { events } = watching;
  expect(sequences(events)).toEqual(upTo(events.length));
  expect(kinds(events)).toEqual(expect.arrayContaining(["requeued", "completed"]));
  const requeued = events.find(({ payload }) => payload.case === "requeued");
  expect(requeued?.payload.value).toMatchObject({ cause: { reason: "LEASE_LOST" } });
  expect(resultOf(events)).toMatchObject({ count: TEXTS.length });
});

test("a killed platform has all acknowledged writes after its restart", { timeout: 60_000 }, async () => {
  const [port = 0] = await freePorts(1);
  const { started, start } = await platform(["start"], { DEPUTE_GATEWAY_PORT: String(port) });
  const clients = connectTo(started.about);
  const { about: delegate } = await worker(started.about, PAUSE_MS);
  const minted = await clients.tokens.mintToken({
    requestId: "mint",
    delegatee: delegate.principal,
    capabilities: [{ namespace: "llm", action: "classify", resource: "texts/**" }],
    contractId: "ct_0123456789ab",
    maxBudgetMicrocents: 10n,
  });
  const { revocation } = await clients.revocations.revokeMintedToken({
    revocationId: minted.revocationId,
    scope: 1,
  });
  const request = { requestId: "survive", draft: draftFor(delegate.agentId) };
  const before = collect(clients.tasks.delegateTask(request));
  await before.progressed(2);
  await started.stop("SIGKILL");
  await before.over;
  const seenSequences = sequences(before.events);
  expect(seenSequences).toEqual(upTo(seenSequences.length));

  await start();
  const again = connectTo(started.about);
  const taskId = before.events[0]?.taskId ?? "";
  const after = collect(again.tasks.watchTask({ taskId, afterSequence: BigInt(seenSequences.length) }));
  await after.over;
  const log = [...before.events, ...after.events];
  expect(sequences(log)).toEqual(upTo(log.length));
  expect(resultOf(after.events)).toMatchObject({ count: TEXTS.length });
  expect(await wholeLog(again, taskId)).toEqual(log);

  // After the restart the platform still has the task, the agent and the revocation, and denies the revoked token.
  expect((await again.tasks.createTask(request)).task?.id).toBe(taskId);
  expect((await again.agents.getAgent({ agentId: delegate.agentId })).agent?.principal).toBe(
    delegate.principal,
  );
  const { revocations } = await again.revocations.listRevocations({});
  expect(revocations).toMatchObject([{ sequence: revocation?.sequence }]);
  const inspected = await again.tokens.inspectToken({ token: minted.token });
  expect(inspected.result.case).toBe("denial");
});

const redis = await redisForTests();
afterAll(() => redis?.stop());

test.runIf(redis !== undefined)(
  "an outage of Redis adds latency, and loses no event",
  { timeout: 180_000 },
  async () => {
    if (redis === undefined) return;
    const names = ["GATEWAY", "REGISTRY", "TASKS", "TOKENS", "VERIFIER"];
    const ports = await freePorts(names.length);
    const env = Object.fromEntries(names.map((name, n) => [`DEPUTE_${name}_PORT`, String(ports[n])]));
    const { hostname: host, port } = new URL(redis.url);
    const between = await tcpProxy({ host, port: Number(port || 6379) });
    cleanUp.add(() => between.cut());
    const settings = { ...env, DEPUTE_REDIS_URL: `redis://127.0.0.1:${between.port}` };
    const { started } = await platform(["cluster"], settings);
    const clients = connectTo(started.about);
    const { about: delegate } = await worker(started.about, PAUSE_MS);
    // On a busy machine a worker may lose a short lease, and the next attempt would report its progress again.
    const draft = { ...draftFor(delegate.agentId), limits: { heartbeat: { seconds: 15n } } };
    const watching = collect(clients.tasks.delegateTask({ requestId: "no redis", draft }));
    await watching.progressed(1);
    await between.cut();
    await watching.over;
    const { events } = watching;
    expect(sequences(events)).toEqual(upTo(events.length));
    expect(kinds(events).filter((kind) => kind === "progress")).toHaveLength(4);
    expect(events.at(-1)?.payload.case).toBe("completed");

    // The worker finds the work by polling, without a wake-up.
    const next = await clients.tasks.createTask({ requestId: "later", draft });
    const log = await wholeLog(clients, next.task?.id ?? "");
    expect(log.at(-1)?.payload.case).toBe("completed");
  },
);
