import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { durationFromMs, timestampMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Assignment,
  type Lease,
  WorkerDirective,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { FOUND } from "@depute/store";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { limits, T0 } from "../../testing/tasks.ts";
import { claim } from "../queue/claim.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const text = (value: JsonValue) => fromJson(ValueSchema, value);
const ME = asCaller(BOB);
const HER = asCaller(ALICE);
const CHECKPOINT = text({ done: 3 });

let count = 0;
const requestId = () => `request ${++count}`;

async function assigned(): Promise<Assignment & { lease: Lease }> {
  const stream = { agentId: "bob", worker: "w", capacity: 1, capabilityIds: [], holder: `stream ${++count}` };
  const [assignment] = await claim(
    bench.runtime.context.engine,
    stream,
    1,
    bench.runtime.context.contextMemory,
  );
  if (assignment?.lease === undefined) throw new Error("nothing to do");
  return { ...assignment, lease: assignment.lease };
}

async function begun(heartbeat = 30_000): Promise<Lease> {
  const draft = {
    capabilityId: "shout",
    input: text("hello"),
    externalId: `mine ${++count}`,
    limits: limits({ heartbeat }),
  };
  await bench.tasks.createTask({ requestId: requestId(), draft }, HER);
  const { lease } = await assigned();
  await bench.workers.startAssignment({ lease }, ME);
  return lease;
}

const get = async ({ taskId }: Lease) => (await bench.tasks.getTask({ taskId }, HER)).task;
const casesOf = async ({ taskId }: Lease) =>
  (await bench.runtime.context.engine.events(taskId, 0n, 100)).map(({ payload }) => payload.case);
const beat = (lease: Lease) => bench.workers.heartbeatAssignment({ lease }, ME);

describe("a checkpoint", () => {
  test("is in the assignment after a lost attempt", async () => {
    const lease = await begun(5000);
    await bench.workers.saveCheckpoint({ lease, checkpoint: text({ done: 1 }) }, ME);
    await bench.workers.saveCheckpoint({ lease, checkpoint: CHECKPOINT }, ME);
    expect(await get(lease)).toMatchObject({ checkpointAvailable: true });
    await bench.pass(5000);
    expect(await assigned()).toMatchObject({ checkpoint: CHECKPOINT, task: { attempt: 2 } });
  });

  test("that is saved twice unchanged has one event", async () => {
    const lease = await begun();
    const save = () => bench.workers.saveCheckpoint({ lease, checkpoint: CHECKPOINT }, ME);
    await save();
    expect(await save()).toMatchObject({ directive: WorkerDirective.CONTINUE });
    expect((await casesOf(lease)).filter((name) => name === "checkpointed")).toHaveLength(1);
  });

  test("is deleted at the end of the task, and is never visible to the delegator", async () => {
    const lease = await begun();
    await bench.workers.saveCheckpoint({ lease, checkpoint: CHECKPOINT }, ME);
    const events = await bench.runtime.context.engine.events(lease.taskId, 0n, 100);
    expect(JSON.stringify(events, (_, v) => (typeof v === "bigint" ? String(v) : v))).not.toContain("done");
    await bench.workers.completeAssignment({ lease, output: { full: text("HELLO") } }, ME);
    expect(await get(lease)).toMatchObject({ checkpointAvailable: false });
    const row = await bench.runtime.context.engine.store.read((tx) =>
      tx.get(FOUND, "SELECT 1 FROM task_checkpoints WHERE task_id = ?", [lease.taskId]),
    );
    expect(row).toBeUndefined();
  });

  test("that is too large, or under a stale lease, is refused", async () => {
    const lease = await begun();
    const large = text("x".repeat(512 * 1024));
    const saving = (under: Lease, checkpoint = CHECKPOINT) =>
      refusal(bench.workers.saveCheckpoint({ lease: under, checkpoint }, ME));
    expect(await saving(lease, large)).toMatchObject({ reason: "LIMIT_EXCEEDED", fields: ["checkpoint"] });
    expect(await saving({ ...lease, epoch: 7n })).toMatchObject({ reason: "LEASE_LOST" });
  });
});

describe("a suspension", () => {
  test("reaches the worker with heartbeats and reports, and a resumed task continues from the checkpoint", async () => {
    const lease = await begun();
    await bench.tasks.suspendTask({ taskId: lease.taskId, reason: "not now" }, HER);
    expect(await beat(lease)).toMatchObject({ directive: WorkerDirective.SUSPEND, reason: "not now" });
    expect(await bench.workers.reportProgress({ lease, progress: {} }, ME)).toMatchObject({
      directive: WorkerDirective.SUSPEND,
    });
    const { task } = await bench.workers.suspendAssignment({ lease, checkpoint: CHECKPOINT }, ME);
    expect(task).toMatchObject({ status: TaskStatus.SUSPENDED, attempt: 0, checkpointAvailable: true });
    expect(task?.suspensionRequest).toBeUndefined();
    await bench.workers.suspendAssignment({ lease, checkpoint: CHECKPOINT }, ME);
    await expect(assigned()).rejects.toThrow("nothing to do");

    const budget = { maxTokens: 900, detailLevel: "full" };
    const resumed = await bench.tasks.resumeTask(
      { externalId: task?.externalId ?? "", requestId: requestId(), budget },
      HER,
    );
    expect(resumed).toMatchObject({ task: { budget }, previousStatus: TaskStatus.SUSPENDED });
    const again = await assigned();
    expect(again).toMatchObject({
      checkpoint: CHECKPOINT,
      task: { budget, attempt: 1 },
      lease: { epoch: 2n },
    });
    expect(await casesOf(lease)).toEqual([
      "created",
      "accepted",
      "started",
      "suspensionRequested",
      "progress",
      "checkpointed",
      "suspended",
      "resumed",
      "accepted",
    ]);
  });

  test("that is requested again changes nothing", async () => {
    const lease = await begun();
    await bench.tasks.suspendTask({ taskId: lease.taskId }, HER);
    const { task } = await bench.tasks.suspendTask({ taskId: lease.taskId }, HER);
    expect(task?.lastSequence).toBe(4n);
    await bench.workers.suspendAssignment({ lease }, ME);
    const { task: suspended } = await bench.tasks.suspendTask({ taskId: lease.taskId }, HER);
    expect(suspended?.lastSequence).toBe(5n);
  });

  test("takes effect when the worker is lost before it suspends", async () => {
    const lease = await begun(5000);
    await bench.tasks.suspendTask({ taskId: lease.taskId, reason: "not now" }, HER);
    await bench.pass(5000);
    expect(await get(lease)).toMatchObject({ status: TaskStatus.SUSPENDED, attempt: 1 });
  });

  test("is requested and ended by the delegator alone", async () => {
    const lease = await begun();
    const { taskId } = lease;
    const stranger = asCaller(`${"C".repeat(42)}I`);
    for (const call of [bench.tasks.suspendTask, bench.tasks.resumeTask]) {
      expect(await refusal(call({ taskId }, ME))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
      expect(await refusal(call({ taskId }, stranger))).toMatchObject({ reason: "TASK_NOT_FOUND" });
      expect(await refusal(call({ externalId: "none" }, HER))).toMatchObject({ reason: "TASK_NOT_FOUND" });
    }
  });

  test("is refused unless the task runs, and a resumption unless it is suspended", async () => {
    const draft = { capabilityId: "shout", input: text("hello") };
    const { task } = await bench.tasks.createTask({ requestId: requestId(), draft }, HER);
    const taskId = task?.id ?? "";
    expect(await refusal(bench.tasks.suspendTask({ taskId }, HER))).toMatchObject({
      reason: "TASK_STATE_CONFLICT",
    });
    expect(await refusal(bench.tasks.resumeTask({ taskId }, HER))).toMatchObject({
      reason: "TASK_NOT_RESUMABLE",
      metadata: { task: taskId, status: "pending" },
    });
  });

  test("is ended once for each request id", async () => {
    const lease = await begun();
    await bench.workers.suspendAssignment({ lease }, ME);
    const request = { taskId: lease.taskId, requestId: requestId() };
    await bench.tasks.resumeTask(request, HER);
    const { task } = await bench.tasks.resumeTask(request, HER);
    expect(task).toMatchObject({ status: TaskStatus.PENDING, lastSequence: 5n });
    const other = { ...request, budget: { maxTokens: 1, detailLevel: "full" } };
    expect(await refusal(bench.tasks.resumeTask(other, HER))).toMatchObject({ reason: "REQUEST_ID_REUSED" });
  });
});

describe("a question", () => {
  const question = { prompt: "Which one?", details: text(["a", "b"]) };

  test("stays open until its answer, which the next heartbeat and all later assignments contain", async () => {
    const lease = await begun(5000);
    const { taskId } = lease;
    await bench.workers.requestInput({ lease, question }, ME);
    await bench.workers.requestInput({ lease, question }, ME);
    expect(await get(lease)).toMatchObject({ status: TaskStatus.INPUT_REQUIRED, question, lastSequence: 4n });
    expect(
      await refusal(bench.workers.requestInput({ lease, question: { prompt: "Or?" } }, ME)),
    ).toMatchObject({
      reason: "TASK_STATE_CONFLICT",
    });
    const answer = { taskId, requestId: requestId(), input: text("b") };
    await bench.tasks.provideInput(answer, HER);
    const { task } = await bench.tasks.provideInput(answer, HER);
    expect(task).toMatchObject({ status: TaskStatus.RUNNING, lastSequence: 5n });
    expect(task?.question).toBeUndefined();
    expect((await beat(lease)).providedInputs).toEqual([text("b")]);
    expect((await bench.workers.heartbeatAssignment({ lease, inputsSeen: 1 }, ME)).providedInputs).toEqual(
      [],
    );
    await bench.pass(5000);
    expect((await assigned()).providedInputs).toEqual([text("b")]);
  });

  test("pauses the time limit of the attempt, and not the heartbeat timeout", async () => {
    const draft = {
      capabilityId: "shout",
      input: text("hello"),
      limits: limits({ attempt: 10_000, heartbeat: 60_000 }),
    };
    await bench.tasks.createTask({ requestId: requestId(), draft }, HER);
    const { lease } = await assigned();
    await bench.workers.startAssignment({ lease }, ME);
    await bench.pass(4000);
    await bench.workers.requestInput({ lease, question }, ME);
    await bench.pass(50_000);
    await bench.tasks.provideInput({ taskId: lease.taskId, requestId: requestId(), input: text("a") }, HER);
    const { workExpireTime } = await beat(lease);
    expect(workExpireTime && timestampMs(workExpireTime)).toBe(T0 + 60_000);
    await bench.pass(6000);
    expect(await get(lease)).toMatchObject({ status: TaskStatus.PENDING });
  });

  test("is answered by the delegator, while it is open, within the limits", async () => {
    const lease = await begun();
    const provide = (input: JsonValue, options = HER) =>
      refusal(
        bench.tasks.provideInput(
          { taskId: lease.taskId, requestId: requestId(), input: text(input) },
          options,
        ),
      );
    expect(await provide("a")).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
    await bench.workers.requestInput({ lease, question }, ME);
    expect(await provide("a", ME)).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await provide("x".repeat(64 * 1024))).toMatchObject({ reason: "LIMIT_EXCEEDED" });
  });
});

describe("a heartbeat that waits", () => {
  const wait = durationFromMs(9000);

  test("returns at once when the task is cancelled", async () => {
    const lease = await begun();
    const waiting = bench.workers.heartbeatAssignment({ lease, wait }, ME);
    await bench.tasks.cancelTask({ taskId: lease.taskId, reason: "no more" }, HER);
    expect(await waiting).toMatchObject({ directive: WorkerDirective.STOP, reason: "CANCELLED: no more" });
  });

  test("returns at once when the question is answered", async () => {
    const lease = await begun();
    await bench.workers.requestInput({ lease, question: { prompt: "Which?" } }, ME);
    const waiting = bench.workers.heartbeatAssignment({ lease, wait }, ME);
    await bench.tasks.provideInput({ taskId: lease.taskId, requestId: requestId(), input: text(1) }, HER);
    expect(await waiting).toMatchObject({ directive: WorkerDirective.CONTINUE, providedInputs: [text(1)] });
  });
});

describe("a wait for a task", () => {
  const timeout = durationFromMs(9000);

  test("ends when the task ends, or with the event after the cursor", async () => {
    const lease = await begun();
    const { taskId } = lease;
    const end = bench.tasks.waitTask({ taskId, timeout }, HER);
    const next = bench.tasks.waitTask({ taskId, timeout, afterSequence: 3n }, HER);
    await bench.workers.reportProgress({ lease, progress: { processed: 1 } }, ME);
    expect(await next).toMatchObject({ timedOut: false, task: { lastSequence: 4n } });
    await bench.workers.completeAssignment({ lease, output: { full: text("HELLO") } }, ME);
    expect(await end).toMatchObject({ timedOut: false, task: { status: TaskStatus.COMPLETED } });
  });

  test("ends at its timeout", async () => {
    const { taskId } = await begun();
    expect(await bench.tasks.waitTask({ taskId, timeout: durationFromMs(0) }, HER)).toMatchObject({
      timedOut: true,
      task: { status: TaskStatus.RUNNING },
    });
  });
});
