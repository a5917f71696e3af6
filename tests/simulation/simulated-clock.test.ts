import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { AgentHealth } from "@depute/contracts/depute/registry/v1/agent_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewKind, ReviewState } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { generateKeypair } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { afterEach, beforeEach, expect, test } from "vitest";
import { refuseAmbientTime } from "./ambient-time.ts";
import { type Simulation, startSimulation } from "./platform.ts";

let ambient: ReturnType<typeof refuseAmbientTime>;
let simulation: Simulation;
let requests = 0;
const requestId = () => `request-${++requests}`;
const seconds = (count: number) => ({ seconds: BigInt(count) });

beforeEach(async () => {
  ambient = refuseAmbientTime();
  simulation = await startSimulation();
});

afterEach(async () => {
  await simulation.stop().finally(() => ambient.restore());
  expect(ambient.uses).toEqual([]);
  expect(simulation.errors).toEqual([]);
});

const register = (id: string, leaseSeconds = 0) =>
  simulation.clients.agents.registerAgent({
    requestId: requestId(),
    agent: { id, leaseDuration: seconds(leaseSeconds) },
  });

async function create(draft: object = {}) {
  const request = { requestId: requestId(), draft: { agentId: "worker", ...draft } };
  const { task } = await simulation.clients.tasks.createTask(request);
  return task?.id ?? "";
}

async function take(worker: string) {
  const request = { agentId: "worker", worker, begin: true, wait: seconds(0) };
  const { assignments } = await simulation.clients.workers.takeAssignments(request);
  return assignments;
}

async function statusOf(taskId: string) {
  const { task } = await simulation.clients.tasks.getTask({ taskId });
  return task?.status;
}

test("a silent worker loses its lease, and another worker gets the task", async () => {
  await register("worker");
  const taskId = await create({ limits: { heartbeat: seconds(10), total: seconds(600) } });
  const [first] = await take("first");
  expect(first?.task?.id).toBe(taskId);
  await simulation.pass(9_000);
  expect(await statusOf(taskId)).toBe(TaskStatus.RUNNING);
  await simulation.pass(2_000);
  expect(await statusOf(taskId)).toBe(TaskStatus.PENDING);
  await simulation.pass(60_000);
  const [second] = await take("second");
  expect(second?.task?.id).toBe(taskId);
  expect(second?.lease?.epoch).toBeGreaterThan(first?.lease?.epoch ?? 0n);
  await expect(simulation.clients.workers.heartbeatAssignment({ lease: first?.lease })).rejects.toThrow(
    /lease/,
  );
});

test("a task ends at its total time limit", async () => {
  await register("worker");
  const taskId = await create({ limits: { total: seconds(60) } });
  await simulation.pass(59_000);
  expect(await statusOf(taskId)).toBe(TaskStatus.PENDING);
  await simulation.pass(1_001);
  expect(await statusOf(taskId)).toBe(TaskStatus.EXPIRED);
});

test("a failed attempt waits for its backoff", async () => {
  await register("worker");
  const taskId = await create({ retry: { maxAttempts: 2, initialBackoff: seconds(30) } });
  const [first] = await take("first");
  const failure = { reason: "BUSY", message: "later", retryable: true };
  await simulation.clients.workers.failAssignment({ lease: first?.lease, failure });
  await simulation.pass(29_000);
  expect(await take("second")).toEqual([]);
  await simulation.pass(1_001);
  const [second] = await take("second");
  expect(second?.task?.id).toBe(taskId);
});

test("a call that waits for a task ends with the simulated time", async () => {
  await register("worker");
  const taskId = await create();
  let isAnswered = false;
  const waiting = simulation.clients.tasks.waitTask({ taskId, timeout: seconds(20) }).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await simulation.pass(19_000);
  expect(isAnswered).toBe(false);
  await simulation.pass(1_001);
  expect((await waiting).task?.status).toBe(TaskStatus.PENDING);
});

test("a stream ends at its caller's time limit", async () => {
  await register("worker");
  const taskId = await create();
  let ended: unknown;
  const reading = (async () => {
    for await (const _ of simulation.clients.tasks.watchTask({ taskId }, { timeoutMs: 5_000 }));
  })().catch((error: unknown) => {
    ended = error;
  });
  await simulation.pass(4_000);
  expect(ended).toBeUndefined();
  await simulation.pass(1_001);
  await reading;
  expect(String(ended)).toMatch(/deadline_exceeded/);
});

test("an undecided review times out", async () => {
  const { review } = await simulation.clients.reviews.createReview({
    requestId: requestId(),
    kind: ReviewKind.HUMAN_REVIEW,
    subject: "report",
    reviewers: ["ann"],
    timeout: durationFromMs(3_600_000),
  });
  const stateOf = async () =>
    (await simulation.clients.reviews.getReview({ reviewId: review?.id ?? "" })).review?.state;
  await simulation.pass(3_599_000);
  expect(await stateOf()).toBe(ReviewState.PENDING);
  await simulation.pass(1_001);
  expect(await stateOf()).toBe(ReviewState.TIMED_OUT);
});

test("an agent without heartbeats loses its lease", async () => {
  await register("worker", 10);
  const healthOf = async () =>
    (await simulation.clients.agents.getAgent({ agentId: "worker" })).agent?.health;
  await simulation.clients.agents.heartbeatAgent({ agentId: "worker" });
  await simulation.pass(9_000);
  expect(await healthOf()).toBe(AgentHealth.ALIVE);
  await simulation.pass(1_001);
  expect(await healthOf()).toBe(AgentHealth.LOST);
});

test("a token expires", async () => {
  const holder = generateKeypair(engine);
  const { token } = await simulation.clients.tokens.mintToken({
    requestId: requestId(),
    delegatee: holder.principal.id,
    contractId: "ct_0123456789ab",
    capabilities: [{ namespace: "web", action: "fetch", resource: "**" }],
    lifetime: { seconds: 600n },
    maxBudgetMicrocents: 1_000_000n,
  });
  const verdict = async () =>
    (await simulation.clients.tokens.inspectToken(token === undefined ? {} : { token })).result;
  await simulation.pass(599_000);
  // Reading the revocation log may take a while on a busy machine. Until it is read, the verdict is stale.
  await expect.poll(verdict).toMatchObject({ case: "scope" });
  await simulation.pass(2_000);
  await expect.poll(verdict).toMatchObject({ case: "denial", value: { type: DenialType.EXPIRED } });
});
