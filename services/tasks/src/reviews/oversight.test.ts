import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewDecision } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { as, type Bench, begin, DAY_MS, openBench } from "../testing/bench.ts";
import { ALICE, BOB } from "../testing/fakes.ts";
import { refusal } from "../testing/platform.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME, BOSS] = [as(ALICE), as(BOB), as(CHIEF)];

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.agents.set("chief", { principal: CHIEF, active: true });
  bench.fakes.agents.set("bob", { principal: BOB, active: true, overseer: "chief" });
});
afterEach(() => bench.close());

/** A task of which the result waits for the overseer. */
async function submitted(): Promise<string> {
  const draft = {
    capabilityId: "shout",
    input: fromJson(ValueSchema, "hello"),
    limits: { total: { seconds: 172_800n } },
  };
  const { task } = await bench.tasks.createTask({ requestId: `request ${++count}`, draft }, HER);
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "HELLO") } }, ME);
  return task?.id ?? "";
}

/** However busy the machine is. */
const soon = <T>(check: () => Promise<T>) => vi.waitFor(check, { timeout: 15_000, interval: 10 });
// What goes on in the background begins when the clock moves.
const reviewOf = (taskId: string) =>
  soon(async () => {
    await bench.pass(1);
    const review = [...bench.fakes.reviews.all.values()].findLast(({ subject }) => subject === taskId);
    if (review === undefined) throw new Error("no review");
    return review;
  });
const becomes = (taskId: string, status: TaskStatus) =>
  soon(async () => {
    await bench.pass(1);
    expect((await bench.runtime.context.engine.find(taskId))?.task.status).toBe(status);
  });
const decide = (taskId: string, decision: ReviewDecision) =>
  bench.tasks.decideReview({ taskId, requestId: `decision ${++count}`, decision, comment: "because" }, BOSS);

test("a held result is a review in the queue, for the overseer and not for the author", async () => {
  const taskId = await submitted();
  expect(await reviewOf(taskId)).toMatchObject({
    kind: ReviewKind.OVERSIGHT,
    state: ReviewState.PENDING,
    author: BOB,
    reviewers: [CHIEF],
    content: { kind: { value: "HELLO" } },
  });
});

test.each([
  [ReviewVerdict.APPROVED, TaskStatus.COMPLETED],
  [ReviewVerdict.CHANGES_REQUESTED, TaskStatus.PENDING],
  [ReviewVerdict.REJECTED, TaskStatus.FAILED],
])("the queue's verdict %i moves the task on", async (verdict, status) => {
  const taskId = await submitted();
  bench.fakes.reviews.decide((await reviewOf(taskId)).id, verdict, "by the queue");
  await becomes(taskId, status);
});

test("a decision by the task is one of the queue, and applied once", async () => {
  const taskId = await submitted();
  await decide(taskId, ReviewDecision.APPROVED);
  expect(await reviewOf(taskId)).toMatchObject({ state: ReviewState.APPROVED });
  const { lastSequence } = (await bench.runtime.context.engine.find(taskId))?.task ?? {};
  await bench.reopen();
  expect((await bench.runtime.context.engine.find(taskId))?.task.lastSequence).toBe(lastSequence);
  expect(await refusal(decide(taskId, ReviewDecision.REJECTED))).toMatchObject({
    reason: "TASK_STATE_CONFLICT",
  });
});

test("what the queue decided while nobody looked is applied later, to that very result", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(taskId);
  await bench.reopen(() => bench.fakes.reviews.decide(id, ReviewVerdict.CHANGES_REQUESTED, "louder"));
  await becomes(taskId, TaskStatus.PENDING);
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "HELLO!") } }, ME);
  await soon(async () => {
    await bench.pass(1);
    expect(bench.fakes.reviews.all.size).toBe(2);
  });
  await bench.reopen();
  expect((await bench.runtime.context.engine.find(taskId))?.task.status).toBe(TaskStatus.IN_REVIEW);
});

test("a review of which the queue's answer was lost is found again, decided or not", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(taskId);
  await bench.reopen(() => bench.fakes.reviews.decide(id, ReviewVerdict.APPROVED));
  const { store } = bench.runtime.context.engine;
  await store.write((tx) => tx.run("UPDATE task_reviews SET review_id = ''"));
  expect(await refusal(decide(taskId, ReviewDecision.REJECTED))).toMatchObject({ reason: "REVIEW_CLOSED" });
  expect((await bench.runtime.context.engine.find(taskId))?.task.status).toBe(TaskStatus.COMPLETED);
});

test("a result is held while the queue is away, and nobody decides past it", async () => {
  bench.fakes.away.add("verifier");
  const draft = { agentId: "bob", description: "say hello" };
  const { task } = await bench.tasks.createTask({ requestId: `request ${++count}`, draft }, HER);
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "HELLO") } }, ME);
  const taskId = task?.id ?? "";
  expect(await refusal(decide(taskId, ReviewDecision.APPROVED))).toMatchObject({
    reason: "DEPENDENCY_UNAVAILABLE",
  });
  expect((await bench.runtime.context.engine.find(taskId))?.task.status).toBe(TaskStatus.IN_REVIEW);
  bench.fakes.away.delete("verifier");
  await decide(taskId, ReviewDecision.APPROVED);
  await becomes(taskId, TaskStatus.COMPLETED);
});

test("a task that is called off takes its review back", async () => {
  const taskId = await submitted();
  await reviewOf(taskId);
  await bench.tasks.cancelTask({ taskId }, HER);
  await soon(async () => expect(await reviewOf(taskId)).toMatchObject({ state: ReviewState.WITHDRAWN }));
});

test("a result on which nobody decides in time fails the task", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(taskId);
  bench.fakes.reviews.timeOut(id);
  await bench.pass(DAY_MS / 2);
  await soon(async () => {
    await bench.pass(1000);
    expect((await bench.runtime.context.engine.find(taskId))?.task).toMatchObject({
      status: TaskStatus.FAILED,
      failure: { reason: "REVIEW_TIMED_OUT" },
    });
  });
});
