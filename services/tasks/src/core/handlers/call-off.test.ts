import { fromJson } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type Lease, WorkerDirective } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { fromTimestamp, toTimestamp } from "@depute/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { limits, T0 } from "../../testing/tasks.ts";

const [HER, ME] = [asCaller(ALICE), asCaller(BOB)];
const OUTPUT = { full: fromJson(ValueSchema, "done") };
const FAILURE = { reason: "BROKEN", message: "", retryable: true };
const GRACE = durationFromMs(10_000);

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const requestId = () => `request ${++count}`;

async function created(draft: object = {}): Promise<string> {
  const fullDraft = { agentId: "bob", description: requestId(), limits: limits({ total: 60_000 }), ...draft };
  return (await bench.tasks.createTask({ requestId: requestId(), draft: fullDraft }, HER)).task?.id ?? "";
}

async function begun(draft: object = {}): Promise<Lease> {
  await created(draft);
  const { lease } = await take(bench, "bob");
  if (lease === undefined) throw new Error("nothing to do");
  await bench.workers.startAssignment({ lease }, ME);
  return lease;
}

const get = async (value: string) => (await bench.tasks.getTask({ taskId: value }, HER)).task;
const beat = (lease: Lease, more: object = {}) => bench.workers.heartbeatAssignment({ lease, ...more }, ME);
const callOff = (taskId: string, grace = GRACE) =>
  bench.tasks.cancelTask({ taskId, reason: "no need", grace }, HER);

describe("a task that is cancelled with a grace period", () => {
  test("runs until its worker ends it in order", async () => {
    const lease = await begun();
    const { task, previousStatus } = await callOff(lease.taskId);
    expect(task).toMatchObject({ status: TaskStatus.RUNNING, cancellation: { reason: "no need" } });
    expect(previousStatus).toBe(TaskStatus.RUNNING);
    const beatResult = await beat(lease);
    expect(beatResult).toMatchObject({ directive: WorkerDirective.CANCEL, reason: "no need" });
    expect(fromTimestamp(beatResult.workExpireTime ?? toTimestamp(0))).toBe(T0 + 10_000);
    await bench.workers.releaseAssignment({ lease }, ME);
    const ended = await get(lease.taskId);
    expect(ended).toMatchObject({ status: TaskStatus.CANCELLED, failure: { message: "no need" } });
    expect(ended?.cancellation).toBeUndefined();
  });

  test.each<[string, (lease: Lease) => Promise<unknown>, TaskStatus]>([
    [
      "a result",
      (lease) => bench.workers.completeAssignment({ lease, output: OUTPUT }, ME),
      TaskStatus.COMPLETED,
    ],
    [
      "a failure",
      (lease) => bench.workers.failAssignment({ lease, failure: FAILURE }, ME),
      TaskStatus.CANCELLED,
    ],
    ["an interruption", (lease) => bench.workers.suspendAssignment({ lease }, ME), TaskStatus.CANCELLED],
    ["silence", () => bench.pass(10_000), TaskStatus.CANCELLED],
    ["a lost worker", () => bench.pass(5_000), TaskStatus.CANCELLED],
  ])("ends by %s", async (_name, end, status) => {
    const lease = await begun({ limits: limits({ total: 60_000, heartbeat: 5_000 }) });
    await callOff(lease.taskId);
    if (_name === "silence") await beat(lease);
    await end(lease);
    expect(await get(lease.taskId)).toMatchObject({ status });
  });

  test("is cancelled at once by a call without a grace period, and the request counts once", async () => {
    const lease = await begun();
    await callOff(lease.taskId);
    const { task } = await callOff(lease.taskId, durationFromMs(3_600_000));
    expect(task?.lastSequence).toBe(4n);
    const terminated = await bench.tasks.cancelTask({ taskId: lease.taskId }, HER);
    expect(terminated).toMatchObject({
      task: { status: TaskStatus.CANCELLED, failure: { message: "no need" } },
      previousStatus: TaskStatus.RUNNING,
    });
    expect(await beat(lease)).toMatchObject({ directive: WorkerDirective.STOP });
  });

  test("is cancelled at once if no worker has it", async () => {
    expect((await callOff(await created())).task?.status).toBe(TaskStatus.CANCELLED);
  });
});

describe("a moved deadline", () => {
  const move = (taskId: string, ms: number, options = HER, id = requestId()) =>
    bench.tasks.moveTaskDeadline({ taskId, requestId: id, expireTime: toTimestamp(T0 + ms) }, options);

  test.each([
    [90_000, 89_999],
    [20_000, 19_999],
  ])("of %i ms applies to the task and its attempt, and the worker is notified", async (ms, within) => {
    const lease = await begun();
    const first = await beat(lease);
    const { task } = await move(lease.taskId, ms);
    expect(fromTimestamp(task?.expireTime ?? toTimestamp(0))).toBe(T0 + ms);
    const workExpireTime = first.workExpireTime;
    const beatResult = await beat(lease, { workExpireTime, wait: durationFromMs(5_000) });
    expect(beatResult.directive).toBe(WorkerDirective.DEADLINE_MOVED);
    expect(fromTimestamp(beatResult.workExpireTime ?? toTimestamp(0))).toBe(T0 + ms);
    const again = await beat(lease, { workExpireTime: beatResult.workExpireTime });
    expect(again.directive).toBe(WorkerDirective.CONTINUE);
    for (let at = 0; at + 9_000 < within; at += 9_000) {
      await bench.pass(9_000);
      await beat(lease);
    }
    await bench.pass(within - (bench.clock.now() - T0));
    expect((await get(lease.taskId))?.status).toBe(TaskStatus.RUNNING);
    await bench.pass(1);
    expect((await get(lease.taskId))?.status).toBe(TaskStatus.EXPIRED);
  });

  test("answers a heartbeat that waits", async () => {
    const lease = await begun();
    const { workExpireTime } = await beat(lease);
    const pendingBeat = beat(lease, { workExpireTime, wait: durationFromMs(9_000) });
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    await move(lease.taskId, 30_000);
    expect((await pendingBeat).directive).toBe(WorkerDirective.DEADLINE_MOVED);
  });

  test("leaves a waiting task at its place in the queue", async () => {
    const first = await created();
    await bench.pass(1);
    await created();
    await move(first, 90_000);
    expect((await take(bench, "bob")).lease?.taskId).toBe(first);
  });

  test("moves once for each request id", async () => {
    const taskId = await created();
    await move(taskId, 90_000, HER, "once");
    await move(taskId, 80_000);
    await move(taskId, 90_000, HER, "once");
    expect(fromTimestamp((await get(taskId))?.expireTime ?? toTimestamp(0))).toBe(T0 + 80_000);
    expect(await refusal(move(taskId, 70_000, HER, "once"))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  });

  test.each<[string, number, object]>([
    ["has passed", 0, { fields: ["expire_time"] }],
    ["is beyond the limit", 31 * 86_400_000, { fields: ["expire_time"] }],
  ])("is refused when it %s", async (_name, ms, expected) => {
    expect(await refusal(move(await created(), ms))).toMatchObject(expected);
  });

  test("is refused to other callers, beyond the parent's deadline, and after the end of the task", async () => {
    const parentTaskId = await created();
    const part = await created({ parentTaskId });
    expect(await refusal(move(part, 61_000))).toMatchObject({ fields: ["expire_time"] });
    await move(part, 59_000);
    expect(await refusal(move(part, 58_000, ME))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await refusal(move(part, 58_000, asCaller(`${"E".repeat(42)}Q`)))).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    await bench.tasks.cancelTask({ taskId: part }, HER);
    expect(await refusal(move(part, 58_000))).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
  });
});
