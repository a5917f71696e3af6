import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  ReviewKind,
  ReviewState,
  ReviewVerdict,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { invalid } from "@depute/core";
import { FOUND } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, begin, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { decide, reviewOf, until } from "../../testing/reviews.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME] = [asCaller(ALICE), asCaller(BOB)];

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.agents.set("chief", { principal: CHIEF, active: true });
  bench.fakes.agents.set("bob", { principal: BOB, active: true, overseer: "chief" });
});
afterEach(() => bench.close());

async function handIn(words: string): Promise<void> {
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, words) } }, ME);
}

/** Creates a task whose result waits for the overseer. Returns the task's id. */
async function submitted(): Promise<string> {
  const draft = { agentId: "bob", description: "say hello", limits: { total: { seconds: 172_800n } } };
  const { task } = await bench.tasks.createTask({ requestId: `request ${++count}`, draft }, HER);
  await handIn("HELLO");
  return task?.id ?? "";
}

const taskOf = async (taskId: string) => (await bench.runtime.context.engine.find(taskId))?.task;
const becomes = (taskId: string, status: TaskStatus) =>
  until(bench, async () => {
    const task = await taskOf(taskId);
    return task?.status === status ? task : undefined;
  });
const rows = (table: string) =>
  bench.runtime.context.engine.store.read(
    async (tx) => (await tx.all(FOUND, `SELECT * FROM ${table}`)).length,
  );
/** Waits until the tables of reviews and of pending calls to the verifier are empty. */
const settles = () =>
  until(bench, async () =>
    (await rows("task_reviews")) + (await rows("task_review_calls")) === 0 ? true : undefined,
  );

test("a held result creates a review for the overseer, which its author cannot decide", async () => {
  const taskId = await submitted();
  expect(await reviewOf(bench, taskId)).toMatchObject({
    kind: ReviewKind.OVERSIGHT,
    state: ReviewState.PENDING,
    author: BOB,
    reviewers: [CHIEF],
    escalationReviewers: ["the-orchestrator"],
    content: { kind: { value: "HELLO" } },
  });
});

test("the reviewer is the overseer at the task's creation", async () => {
  const draft = { agentId: "bob", description: "say hello" };
  const { task } = await bench.tasks.createTask({ requestId: `request ${++count}`, draft }, HER);
  bench.fakes.agents.set("chief", { principal: ALICE, active: true });
  await handIn("HELLO");
  expect((await reviewOf(bench, task?.id ?? "")).reviewers).toEqual([CHIEF]);
});

test.each([
  [ReviewVerdict.APPROVED, TaskStatus.COMPLETED],
  [ReviewVerdict.CHANGES_REQUESTED, TaskStatus.PENDING],
  [ReviewVerdict.REJECTED, TaskStatus.FAILED],
])("the verifier's verdict %i changes the task's status", async (verdict, status) => {
  const taskId = await submitted();
  bench.fakes.reviews.decide((await reviewOf(bench, taskId)).id, verdict, "by the overseer");
  await becomes(taskId, status);
  await settles();
});

test("a decision is applied once, by the call that made it", async () => {
  const taskId = await submitted();
  await decide(bench, taskId, ReviewVerdict.APPROVED);
  expect(await reviewOf(bench, taskId)).toMatchObject({ state: ReviewState.APPROVED });
  const { lastSequence } = (await taskOf(taskId)) ?? {};
  await bench.reopen();
  await settles();
  expect((await taskOf(taskId))?.lastSequence).toBe(lastSequence);
  expect(await refusal(decide(bench, taskId, ReviewVerdict.REJECTED))).toMatchObject({
    reason: "TASK_STATE_CONFLICT",
  });
});

test("a decision during a downtime is applied at the start, to the result that it is about", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(bench, taskId);
  await bench.reopen(() => bench.fakes.reviews.decide(id, ReviewVerdict.CHANGES_REQUESTED, "louder"));
  await becomes(taskId, TaskStatus.PENDING);
  await handIn("HELLO!");
  await until(bench, async () => (bench.fakes.reviews.all.size === 2 ? true : undefined));
  // Without its cursor, the service reads the decision on the earlier result again. The earlier decision must
  // not affect the new result.
  await bench.runtime.context.engine.store.write((tx) => tx.run("DELETE FROM cursors"));
  await bench.reopen();
  await until(bench, async () => ((await rows("cursors")) === 1 ? true : undefined));
  expect(await taskOf(taskId)).toMatchObject({ status: TaskStatus.IN_REVIEW });
});

test("a repeated creation call after a lost answer creates no second review", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(bench, taskId);
  await until(bench, async () => ((await rows("task_review_calls")) === 0 ? true : undefined));
  await bench.runtime.context.engine.store.write((tx) =>
    tx.run(
      "INSERT INTO task_review_calls (place, method, review_id, task_id) SELECT 1, 'create', review_id, task_id FROM task_reviews",
    ),
  );
  await bench.reopen();
  await until(bench, async () => ((await rows("task_review_calls")) === 0 ? true : undefined));
  expect([...bench.fakes.reviews.all.keys()]).toEqual([id]);
});

test("a decision is refused after another one at the verifier", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(bench, taskId);
  await bench.reopen(() => bench.fakes.reviews.decide(id, ReviewVerdict.APPROVED));
  expect(await refusal(decide(bench, taskId, ReviewVerdict.REJECTED))).toMatchObject({
    reason: "REVIEW_CLOSED",
  });
  await becomes(taskId, TaskStatus.COMPLETED);
});

test("a result stays held while the verifier is unavailable, and every decision is refused", async () => {
  bench.fakes.away.add("verifier");
  const taskId = await submitted();
  expect(await refusal(decide(bench, taskId, ReviewVerdict.APPROVED))).toMatchObject({
    reason: "DEPENDENCY_UNAVAILABLE",
  });
  expect((await taskOf(taskId))?.status).toBe(TaskStatus.IN_REVIEW);
  bench.fakes.away.delete("verifier");
  // The outbox has not yet retried CreateReview. So `decide` itself creates the review first, and then decides.
  expect(await decide(bench, taskId, ReviewVerdict.APPROVED)).toMatchObject({ status: TaskStatus.COMPLETED });
  await bench.pass(30_000);
  await settles();
  expect(bench.fakes.reviews.all.size).toBe(1);
});

test("a cancelled task withdraws its review", async () => {
  const taskId = await submitted();
  await reviewOf(bench, taskId);
  await bench.tasks.cancelTask({ taskId }, HER);
  await settles();
  expect(await reviewOf(bench, taskId)).toMatchObject({ state: ReviewState.WITHDRAWN });
});

test("a task that is cancelled before the creation of its review creates none", async () => {
  bench.fakes.away.add("verifier");
  const taskId = await submitted();
  await bench.tasks.cancelTask({ taskId }, HER);
  bench.fakes.away.delete("verifier");
  await bench.pass(30_000);
  await settles();
  expect(bench.fakes.reviews.all.size).toBe(0);
});

test("a review that times out fails the task", async () => {
  const taskId = await submitted();
  bench.fakes.reviews.timeOut((await reviewOf(bench, taskId)).id);
  expect(await becomes(taskId, TaskStatus.FAILED)).toMatchObject({ failure: { reason: "REVIEW_TIMED_OUT" } });
  await settles();
});

test("a task waits for the verifier's decision even after the deadline by its own clock", async () => {
  const taskId = await submitted();
  const { id } = await reviewOf(bench, taskId);
  await bench.pass(86_400_000);
  expect(await taskOf(taskId)).toMatchObject({ status: TaskStatus.IN_REVIEW });
  bench.fakes.reviews.decide(id, ReviewVerdict.APPROVED);
  await becomes(taskId, TaskStatus.COMPLETED);
});

test("a review that the verifier refuses fails the task", async () => {
  bench.fakes.reviews.refuses = invalid("reviewers", "are too many");
  const taskId = await submitted();
  expect(await becomes(taskId, TaskStatus.FAILED)).toMatchObject({
    failure: { reason: "REVIEW_TIMED_OUT", message: expect.stringContaining("refused the review") },
  });
});
