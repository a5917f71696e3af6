import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  IdConflictPolicy,
  IdReusePolicy,
  type TaskDraftSchema,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { limits, T0 } from "../../testing/tasks.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const HER = asCaller(ALICE);
const ME = asCaller(BOB);
const STRANGER = asCaller(`${"C".repeat(42)}I`);
const DONE = { full: fromJson(ValueSchema, "done") };

let count = 0;
type Draft = MessageInitShape<typeof TaskDraftSchema>;

/** Creates a task for Bob with a unique description. By default, the delegator is Alice. */
async function task(draft: Draft = {}, options = HER): Promise<string> {
  const requestId = `request ${++count}`;
  const request = { requestId, draft: { agentId: "bob", description: requestId, ...draft } };
  return (await bench.tasks.createTask(request, options)).task?.id ?? "";
}

const get = async (taskId: string, options = HER) => (await bench.tasks.getTask({ taskId }, options)).task;
const statusOf = async (taskId: string, options = HER) => (await get(taskId, options))?.status;

describe("a child task", () => {
  test("is below its parent, with inherited fields", async () => {
    const root = await task({ correlationId: "trip", limits: limits({ total: 50_000 }) });
    const part = await task({ parentTaskId: root }, ME);
    const [rootTask, below] = [await get(root), await get(part, ME)];
    expect(rootTask).toMatchObject({ rootTaskId: root, parentTaskId: "", depth: 0 });
    expect(below).toMatchObject({ rootTaskId: root, parentTaskId: root, depth: 1, correlationId: "trip" });
    expect(below?.expireTime && timestampMs(below.expireTime)).toBe(T0 + 50_000);
  });

  test("is created by the delegator or the delegate of an open task alone", async () => {
    const root = await task();
    await task({ parentTaskId: root }, HER);
    await task({ parentTaskId: root }, ME);
    expect(await refusal(task({ parentTaskId: root }, STRANGER))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    expect(await refusal(task({ parentTaskId: "none" }))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    const over = await task();
    await bench.tasks.cancelTask({ taskId: over }, HER);
    expect(await refusal(task({ parentTaskId: over }))).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
  });

  test("ends with its parent, and so do the tasks below it", async () => {
    const root = await task();
    const part = await task({ parentTaskId: root }, ME);
    const partOfPart = await task({ parentTaskId: part }, ME);
    await bench.tasks.cancelTask({ taskId: root }, HER);
    expect(await statusOf(part, ME)).toBe(TaskStatus.CANCELLED);
    expect((await get(partOfPart, ME))?.failure?.message).toBe("the parent task is cancelled");
  });

  test.each([
    ["complete", TaskStatus.COMPLETED],
    ["fail", TaskStatus.FAILED],
    ["expire", TaskStatus.EXPIRED],
  ])("is cancelled when its parent %ss", async (how, status) => {
    const root = await task({ limits: limits({ total: 60_000, heartbeat: 60_000 }) });
    const lease = await begin(bench, "bob", ME);
    const part = await task({ parentTaskId: root }, ME);
    const partLease = await begin(bench, "bob", ME);
    if (how === "complete") await bench.workers.completeAssignment({ lease, output: DONE }, ME);
    if (how === "fail") await bench.workers.failAssignment({ lease, failure: { reason: "BROKEN" } }, ME);
    if (how === "expire") await bench.pass(60_000);
    expect(await statusOf(root)).toBe(status);
    expect([TaskStatus.CANCELLED, TaskStatus.EXPIRED]).toContain(await statusOf(part, ME));
    expect(await bench.workers.heartbeatAssignment({ lease: partLease }, ME)).toMatchObject({
      directive: WorkerDirective.STOP,
    });
  });

  test("cannot form a cycle: an agent does not get the same work again further down", async () => {
    const words = "count the words";
    const root = await task({ description: words });
    const part = await task({ parentTaskId: root }, ME);
    expect(await refusal(task({ parentTaskId: part, description: words }, ME))).toMatchObject({
      reason: "TASK_CYCLE",
      metadata: { task: root, agent: "bob" },
    });
    const shout = { capabilityId: "shout", input: fromJson(ValueSchema, "a") };
    const askedTask = await task(shout);
    const again = { ...shout, input: fromJson(ValueSchema, "b"), parentTaskId: askedTask };
    expect(await refusal(task(again, ME))).toMatchObject({ reason: "TASK_CYCLE" });
  });

  test("is refused when the tree is too deep, too broad or too large", async () => {
    const root = await task();
    const refused = async (parentTaskId: string) =>
      (await refusal(task({ parentTaskId }, ME))).metadata.limit;
    const [a, b] = [await task({ parentTaskId: root }, ME), await task({ parentTaskId: root }, ME)];
    expect(await refused(root)).toBe("tree.children");
    const deepest = await task({ parentTaskId: a }, ME);
    expect(await refused(deepest)).toBe("tree.depth");
    await task({ parentTaskId: a }, ME);
    expect(await refused(b)).toBe("tree.open_tasks");
    await bench.tasks.cancelTask({ taskId: deepest }, ME);
    await task({ parentTaskId: b }, ME);
  });
});

describe("a lineage", () => {
  test("begins at the root, and shows only the positions of other principals' tasks", async () => {
    const root = await task({ description: "secret plan" });
    const part = await task({ parentTaskId: root, description: "one step", agentId: "worker" }, ME);
    const { tasks } = await bench.tasks.getLineage({ taskId: part }, ME);
    expect(tasks.map(({ id, description }) => [id, description])).toEqual([
      [root, "secret plan"],
      [part, "one step"],
    ]);
    expect(await refusal(bench.tasks.getLineage({ taskId: part }, STRANGER))).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    const page = await bench.tasks.listTasks({ parentTaskId: root }, HER);
    expect(page.tasks).toHaveLength(1);
    expect(page.tasks[0]).toMatchObject({
      id: part,
      description: "",
      status: TaskStatus.PENDING,
      agentId: "worker",
    });
    expect((await bench.tasks.listTasks({ parentTaskId: root }, ME)).tasks[0]?.description).toBe("one step");
    expect(await refusal(bench.tasks.listTasks({ parentTaskId: root }, STRANGER))).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
  });

  test("of a whole tree is listed by its root or by a parent, not by both", async () => {
    const root = await task({ description: "secret plan" });
    const part = await task({ parentTaskId: root, description: "one step", agentId: "worker" }, ME);
    const below = await task({ parentTaskId: part, description: "half a step", agentId: "bob" }, ME);
    const list = async (filter: object, options = HER) =>
      (await bench.tasks.listTasks(filter, options)).tasks.map(({ id, description }) => [id, description]);
    expect(await list({ rootTaskId: root })).toEqual([
      [below, ""],
      [part, ""],
    ]);
    expect(await list({ rootTaskId: root, agentId: "bob" }, ME)).toEqual([[below, "half a step"]]);
    expect(await refusal(list({ rootTaskId: root }, STRANGER))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    const page = await bench.tasks.listTasks({ rootTaskId: root, pageSize: 1 }, HER);
    expect(await list({ rootTaskId: root, pageToken: page.nextPageToken })).toEqual([[part, ""]]);
  });

  test("is returned in pages", async () => {
    const root = await task();
    const parts = [await task({ parentTaskId: root }), await task({ parentTaskId: root })];
    const first = await bench.tasks.listTasks({ parentTaskId: root, pageSize: 1 }, HER);
    const pageToken = first.nextPageToken;
    const second = await bench.tasks.listTasks({ parentTaskId: root, pageSize: 1, pageToken }, HER);
    expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(parts.reverse());
    expect(second.nextPageToken).toBe("");
  });
});

describe("the budget of a task", () => {
  const spend = (tokens: number) => ({ maxTokens: BigInt(tokens) });

  test("is reserved for child tasks, returned by them, and reported to the worker", async () => {
    const root = await task({ spend: spend(100) });
    const lease = await begin(bench, "bob", ME);
    const part = await task({ parentTaskId: root, spend: spend(70), agentId: "worker" }, ME);
    expect(await refusal(task({ parentTaskId: root, spend: spend(31) }, ME))).toMatchObject({
      reason: "BUDGET_EXCEEDED",
      metadata: { needed: "31", allowed: "30", unit: "tokens" },
    });
    const beat = (tokensUsed: bigint) =>
      bench.workers.heartbeatAssignment({ lease, usage: { tokensUsed } }, ME);
    expect((await beat(10n)).spendLeft).toMatchObject({ maxTokens: 20n });
    const partLease = await begin(bench, "worker");
    const usage = { tokensUsed: 40n };
    await bench.workers.completeAssignment({ lease: partLease, output: DONE, usage });
    expect(await statusOf(part, ME)).toBe(TaskStatus.COMPLETED);
    expect((await beat(10n)).spendLeft).toMatchObject({ maxTokens: 50n });
  });

  test("is never exceeded: a task that reports more fails", async () => {
    const root = await task({ spend: spend(100) });
    const lease = await begin(bench, "bob", ME);
    const answer = await bench.workers.heartbeatAssignment({ lease, usage: { tokensUsed: 101n } }, ME);
    expect(answer).toMatchObject({ directive: WorkerDirective.STOP });
    expect((await get(root))?.failure?.reason).toBe("BUDGET_EXCEEDED");

    const other = await task({ spend: spend(100) });
    const second = await begin(bench, "bob", ME);
    const usage = { tokensUsed: 101n };
    await bench.workers.completeAssignment({ lease: second, output: DONE, usage }, ME);
    expect(await get(other)).toMatchObject({
      status: TaskStatus.FAILED,
      failure: { reason: "BUDGET_EXCEEDED" },
    });
  });

  test("counts lost attempts", async () => {
    await task({ spend: spend(100), limits: limits({ heartbeat: 5000 }) });
    const first = await begin(bench, "bob", ME);
    await bench.workers.heartbeatAssignment({ lease: first, usage: { tokensUsed: 60n } }, ME);
    await bench.pass(5000);
    const second = await begin(bench, "bob", ME);
    expect((await bench.workers.heartbeatAssignment({ lease: second }, ME)).spendLeft).toMatchObject({
      maxTokens: 40n,
    });
  });

  test("can change with a resumption, within what the parent has left", async () => {
    const root = await task({ spend: spend(100) });
    const part = await task({ parentTaskId: root, spend: spend(30), agentId: "worker" }, ME);
    const lease = await begin(bench, "worker");
    await bench.workers.suspendAssignment({ lease });
    const resume = (tokens: number) => bench.tasks.resumeTask({ taskId: part, spend: spend(tokens) }, ME);
    expect(await refusal(resume(101))).toMatchObject({ reason: "BUDGET_EXCEEDED" });
    expect((await resume(100)).task?.spend).toMatchObject({ maxTokens: 100n });
    expect(await refusal(task({ parentTaskId: root }, ME))).toMatchObject({ reason: "BUDGET_EXCEEDED" });
  });
});

describe("an external id", () => {
  const mine = { externalId: "mine", description: "one" };
  const again = (
    policies: { reusePolicy?: IdReusePolicy; conflictPolicy?: IdConflictPolicy },
    description = "two",
  ) =>
    bench.tasks.createTask(
      { requestId: `request ${++count}`, draft: { agentId: "bob", ...mine, description }, ...policies },
      HER,
    );

  test("moves to a new task if the policies allow it, and the old task is cancelled", async () => {
    const old = await task(mine);
    const { task: next } = await again({ conflictPolicy: IdConflictPolicy.TERMINATE_EXISTING });
    expect(await statusOf(old)).toBe(TaskStatus.CANCELLED);
    const externalTask = await bench.tasks.getTask({ externalId: "mine" }, HER);
    expect(externalTask.task?.id).toBe(next?.id);
    expect(next?.id).not.toBe(old);
    expect(await refusal(again({}, "three"))).toMatchObject({ reason: "TASK_ID_TAKEN" });
    expect((await again({ conflictPolicy: IdConflictPolicy.USE_EXISTING }, "three")).task?.id).toBe(next?.id);
  });

  test("of an ended task is free if the policy allows reuse", async () => {
    const old = await task(mine);
    await bench.tasks.cancelTask({ taskId: old }, HER);
    const { task: next } = await again({ reusePolicy: IdReusePolicy.ALLOW_UNSUCCESSFUL });
    expect(next?.id).not.toBe(old);
    expect(await get(old)).toMatchObject({ externalId: "mine" });
  });
});

describe("the queue", () => {
  test("is ordered by priority, then by age", async () => {
    const low = await task({ priority: 1 });
    const high = await task({ priority: 9 });
    const alsoHigh = await task({ priority: 9 });
    const order = [];
    for (let i = 0; i < 3; i++) order.push((await take(bench, "bob")).lease.taskId);
    expect(order).toEqual([high, alsoHigh, low]);
  });

  test("gives an agent at most its limit of tasks, and none while it drains", async () => {
    await task();
    await task();
    const set = (limitsInForce: { maxHeld?: number; draining?: boolean }, options = ME) =>
      bench.workers.setDelegateLimits({ agentId: "bob", limits: limitsInForce }, options);
    expect(await refusal(set({ maxHeld: 1 }, HER))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    await set({ maxHeld: 1 });
    const { lease } = await take(bench, "bob");
    await expect(take(bench, "bob")).rejects.toThrow("nothing to do");
    expect(await bench.workers.getDelegateLimits({ agentId: "bob" }, ME)).toMatchObject({
      limits: { maxHeld: 1, draining: false },
      heldCount: 1,
    });
    await set({ draining: true });
    await bench.workers.startAssignment({ lease }, ME);
    await bench.workers.completeAssignment({ lease, output: DONE }, ME);
    await expect(take(bench, "bob")).rejects.toThrow("nothing to do");
    await set({});
    await take(bench, "bob");
  });

  test("contains a failed task again after its backoff", async () => {
    await task({ retry: { initialBackoff: durationFromMs(3000) } });
    const lease = await begin(bench, "bob", ME);
    await bench.workers.failAssignment({ lease, failure: { reason: "BROKEN", retryable: true } }, ME);
    await expect(take(bench, "bob")).rejects.toThrow("nothing to do");
    await bench.pass(3000);
    expect((await take(bench, "bob")).task?.attempt).toBe(2);
  });
});

test("a worker's estimate is recorded once", async () => {
  const taskId = await task();
  const { lease } = await take(bench, "bob");
  const estimate = { duration: durationFromMs(5000), note: "soon" };
  await bench.workers.acceptAssignment({ lease, estimate }, ME);
  await bench.workers.acceptAssignment({ lease, estimate }, ME);
  expect(await get(taskId)).toMatchObject({ estimate, status: TaskStatus.ACCEPTED, lastSequence: 3n });
});

test("a creation with a wait returns the ended task", async () => {
  const requestId = `request ${++count}`;
  const wait = durationFromMs(9000);
  const draft = { agentId: "bob", description: "wait for it" };
  const ended = bench.tasks.createTask({ requestId, draft, wait }, HER);
  const assignment = await vi.waitFor(() => take(bench, "bob"));
  await bench.workers.startAssignment({ lease: assignment.lease }, ME);
  await bench.workers.completeAssignment({ lease: assignment.lease, output: DONE }, ME);
  expect(await ended).toMatchObject({ task: { status: TaskStatus.COMPLETED, output: DONE } });
});
