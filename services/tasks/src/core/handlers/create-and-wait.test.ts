import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { limits } from "../../testing/tasks.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const HER = asCaller(ALICE);
const ME = asCaller(BOB);
const INPUT = fromJson(ValueSchema, "hello");
const OUTPUT = { full: fromJson(ValueSchema, "HELLO") };

/**
 * Starts a call that creates a task and waits for its end. Once the task exists, resolves with the pending call and the
 * task's id.
 */
async function awaited(draft: MessageInitShape<typeof TaskDraftSchema> = {}, waitMs = 60_000) {
  const fullDraft = { capabilityId: "shout", input: INPUT, ...draft };
  const request = { requestId: "r", draft: fullDraft, wait: durationFromMs(waitMs) };
  const answer = bench.tasks.createTask(request, HER).then(({ task }) => task);
  const taskId = await vi.waitFor(async () => {
    const [task] = (await bench.tasks.listTasks({}, HER)).tasks;
    if (task === undefined) throw new Error("not there yet");
    return task.id;
  });
  return { answer, taskId, again: () => bench.tasks.createTask(request, HER).then(({ task }) => task) };
}

const stored = async (value: string) => (await bench.tasks.getTask({ taskId: value }, HER)).task;

test.each([
  [
    "completed",
    TaskStatus.COMPLETED,
    async () => {
      const lease = await begin(bench, "bob", ME);
      await bench.workers.completeAssignment({ lease, output: OUTPUT, usage: { tokensUsed: 7n } }, ME);
    },
  ],
  [
    "failed",
    TaskStatus.FAILED,
    async () => {
      const lease = await begin(bench, "bob", ME);
      const failure = { reason: "BROKEN", message: "", retryable: false };
      await bench.workers.failAssignment({ lease, failure }, ME);
    },
  ],
  [
    "rejected",
    TaskStatus.REJECTED,
    async () => {
      const { lease } = await take(bench, "bob");
      await bench.workers.rejectAssignment({ lease, failure: { reason: "NOT_MINE" } }, ME);
    },
  ],
  [
    "cancelled",
    TaskStatus.CANCELLED,
    async (id: string) => {
      await bench.tasks.cancelTask({ taskId: id }, HER);
    },
  ],
  ["expired", TaskStatus.EXPIRED, () => bench.pass(5_001)],
])(
  "the answer for a task that is %s is the stored task, also when the call is repeated",
  async (_name, status, end) => {
    const { answer, taskId, again } = await awaited({ limits: limits({ queue: 5_000 }) });
    await end(taskId);
    expect((await answer)?.status).toBe(status);
    expect(await answer).toEqual(await stored(taskId));
    expect(await again()).toEqual(await answer);
  },
);

test("the answer at the timeout is the task in its present state", async () => {
  const { answer, taskId } = await awaited({}, 3_000);
  await begin(bench, "bob", ME);
  await bench.pass(3_000);
  expect(await answer).toMatchObject({ id: taskId, status: TaskStatus.RUNNING, input: INPUT });
  expect(await answer).toEqual(await stored(taskId));
});

test("an attempt with a retry does not end the wait", async () => {
  const { answer, taskId } = await awaited({ retry: { maxAttempts: 2 } });
  const first = await begin(bench, "bob", ME);
  const failure = { reason: "BUSY", message: "", retryable: true };
  await bench.workers.failAssignment({ lease: first, failure }, ME);
  await bench.pass(60_000 - 1);
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: OUTPUT }, ME);
  expect(await answer).toMatchObject({ id: taskId, status: TaskStatus.COMPLETED, output: OUTPUT });
});
