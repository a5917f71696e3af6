import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ReviewDecision } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { as, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME, BOSS] = [as(ALICE), as(BOB), as(CHIEF)];
const DONE = { full: fromJson(ValueSchema, "HELLO") };

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.agents.set("chief", { principal: CHIEF, active: true });
  bench.fakes.agents.set("bob", { principal: BOB, active: true, overseer: "chief" });
});
afterEach(() => bench.close());

async function create(): Promise<string> {
  const draft = { capabilityId: "shout", input: fromJson(ValueSchema, "hello") };
  return (await bench.tasks.createTask({ requestId: `request ${++count}`, draft }, HER)).task?.id ?? "";
}

/** A task of which the result waits for the overseer. */
async function submitted(): Promise<Lease> {
  await create();
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: DONE, usage: { tokensUsed: 7 } }, ME);
  return lease;
}

const get = async ({ taskId }: Lease, options = HER) =>
  (await bench.tasks.getTask({ name: { case: "id", value: taskId } }, options)).task;
const decide = ({ taskId }: Lease, decision: ReviewDecision, options = BOSS, comment = "because") =>
  bench.tasks.decideReview({ taskId, requestId: `decision ${++count}`, decision, comment }, options);

describe("the result of an agent with an overseer", () => {
  test("is seen by the overseer and the delegate, and by the delegator only when it is approved", async () => {
    const lease = await submitted();
    expect(await get(lease)).toMatchObject({ status: TaskStatus.IN_REVIEW, overseerId: "chief" });
    expect((await get(lease))?.output).toBeUndefined();
    expect((await get(lease, BOSS))?.output).toMatchObject(DONE);
    expect((await get(lease, ME))?.output).toMatchObject(DONE);
    const events = await bench.runtime.context.engine.events(lease.taskId, 0n, 10);
    expect(JSON.stringify(events, (_, v) => (typeof v === "bigint" ? String(v) : v))).not.toContain("HELLO");

    const { task } = await decide(lease, ReviewDecision.APPROVED);
    expect(task).toMatchObject({ status: TaskStatus.COMPLETED, output: DONE, usage: { tokensUsed: 7 } });
    expect(await get(lease)).toMatchObject({ output: DONE });
  });

  test("goes back to a worker with the comment when changes are requested", async () => {
    const lease = await submitted();
    await decide(lease, ReviewDecision.CHANGES_REQUESTED, BOSS, "louder");
    const again = await take(bench, "bob");
    expect(again).toMatchObject({ lease: { epoch: 2n }, task: { reviewComment: "louder", attempt: 1 } });
    await bench.workers.startAssignment({ lease: again.lease }, ME);
    await bench.workers.completeAssignment({ lease: again.lease, output: DONE }, ME);
    expect(await get(lease)).toMatchObject({ status: TaskStatus.IN_REVIEW });
  });

  test("that is turned down fails the task, and is gone", async () => {
    const lease = await submitted();
    const { task } = await decide(lease, ReviewDecision.REJECTED);
    expect(task).toMatchObject({
      status: TaskStatus.FAILED,
      failure: { reason: "REVIEW_REJECTED", message: "because", retryable: false },
    });
    expect((await get(lease, BOSS))?.output).toBeUndefined();
  });

  test("is decided on by the overseer alone, once", async () => {
    const lease = await submitted();
    const { APPROVED, REJECTED } = ReviewDecision;
    expect(await refusal(decide(lease, APPROVED, HER))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await refusal(decide(lease, APPROVED, ME))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    expect(await refusal(decide(lease, APPROVED, as(`${"C".repeat(42)}I`)))).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    const once = { taskId: lease.taskId, requestId: "once", decision: APPROVED };
    await bench.tasks.decideReview(once, BOSS);
    expect(await bench.tasks.decideReview(once, BOSS)).toMatchObject({
      task: { status: TaskStatus.COMPLETED },
    });
    expect(await refusal(decide(lease, REJECTED))).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
  });

  test("can still be called off by the delegator, who then never sees it", async () => {
    const lease = await submitted();
    await bench.tasks.cancelTask({ taskId: lease.taskId }, HER);
    expect((await get(lease, BOSS))?.output).toBeUndefined();
  });

  test("has preliminary forms, which are withheld", async () => {
    await create();
    const lease = await begin(bench, "bob", ME);
    await bench.workers.reportPartial({ lease, output: fromJson(ValueSchema, "HEL") }, ME);
    const [event] = await bench.runtime.context.engine.events(lease.taskId, 3n, 1);
    expect(event?.payload).toMatchObject({
      case: "partial",
      value: { withheld: true, resolvedLevel: "compact" },
    });
    expect(event?.payload.case === "partial" && event.payload.value.output).toBeUndefined();
  });
});

describe("reviews", () => {
  test("are listed for the overseer, oldest first, in pages", async () => {
    const leases = [await submitted(), await submitted()];
    const first = await bench.tasks.listReviews({ agentId: "chief", pageSize: 1 }, BOSS);
    const rest = await bench.tasks.listReviews({ agentId: "chief", pageToken: first.nextPageToken }, BOSS);
    expect([...first.tasks, ...rest.tasks].map(({ id }) => id)).toEqual(leases.map(({ taskId }) => taskId));
    expect(await refusal(bench.tasks.listReviews({ agentId: "chief" }, HER))).toMatchObject({
      reason: "CALLER_NOT_ALLOWED",
    });
  });

  test("of an overseer that is not there would wait for ever, so the work is refused", async () => {
    bench.fakes.agents.delete("chief");
    expect(await refusal(create())).toMatchObject({
      reason: "AGENT_NOT_FOUND",
      metadata: { agent: "chief" },
    });
  });
});
