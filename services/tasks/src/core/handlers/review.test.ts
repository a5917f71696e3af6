import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { decide as decideOn } from "../../testing/reviews.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME, BOSS] = [asCaller(ALICE), asCaller(BOB), asCaller(CHIEF)];
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

/** Creates a task whose result waits for the overseer. */
async function submitted(): Promise<Lease> {
  await create();
  const lease = await begin(bench, "bob", ME);
  await bench.workers.completeAssignment({ lease, output: DONE, usage: { tokensUsed: 7n } }, ME);
  return lease;
}

const get = async ({ taskId }: Lease, options = HER) => (await bench.tasks.getTask({ taskId }, options)).task;
const decide = ({ taskId }: Lease, verdict: ReviewVerdict, comment?: string) =>
  decideOn(bench, taskId, verdict, comment);

describe("the result of an agent with an overseer", () => {
  test("is visible to the overseer and the delegate, and to the delegator only after its approval", async () => {
    const lease = await submitted();
    expect(await get(lease)).toMatchObject({ status: TaskStatus.IN_REVIEW, overseerId: "chief" });
    expect((await get(lease))?.output).toBeUndefined();
    expect((await get(lease, BOSS))?.output).toMatchObject(DONE);
    expect((await get(lease, ME))?.output).toMatchObject(DONE);
    const events = await bench.runtime.context.engine.events(lease.taskId, 0n, 10);
    expect(JSON.stringify(events, (_, v) => (typeof v === "bigint" ? String(v) : v))).not.toContain("HELLO");

    expect(await decide(lease, ReviewVerdict.APPROVED)).toMatchObject({ status: TaskStatus.COMPLETED });
    expect(await get(lease, BOSS)).toMatchObject({
      status: TaskStatus.COMPLETED,
      output: DONE,
      usage: { tokensUsed: 7n },
    });
    expect(await get(lease)).toMatchObject({ output: DONE });
  });

  test("returns to a worker with the comment when changes are requested", async () => {
    const lease = await submitted();
    await decide(lease, ReviewVerdict.CHANGES_REQUESTED, "louder");
    const again = await take(bench, "bob");
    expect(again).toMatchObject({ lease: { epoch: 2n }, task: { reviewComment: "louder", attempt: 1 } });
    await bench.workers.startAssignment({ lease: again.lease }, ME);
    await bench.workers.completeAssignment({ lease: again.lease, output: DONE }, ME);
    expect(await get(lease)).toMatchObject({ status: TaskStatus.IN_REVIEW });
  });

  test("that is rejected fails the task, and is deleted", async () => {
    const lease = await submitted();
    expect(await decide(lease, ReviewVerdict.REJECTED)).toMatchObject({
      status: TaskStatus.FAILED,
      failure: { reason: "REVIEW_REJECTED", message: "because", retryable: false },
    });
    expect((await get(lease, BOSS))?.output).toBeUndefined();
  });

  test("is decided once", async () => {
    const lease = await submitted();
    await decide(lease, ReviewVerdict.APPROVED);
    expect(await refusal(decide(lease, ReviewVerdict.REJECTED))).toMatchObject({
      reason: "TASK_STATE_CONFLICT",
    });
  });

  test("can still be cancelled by the delegator, and then stays hidden", async () => {
    const lease = await submitted();
    await bench.tasks.cancelTask({ taskId: lease.taskId }, HER);
    expect((await get(lease, BOSS))?.output).toBeUndefined();
  });

  test("has its preliminary results withheld", async () => {
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

describe("a review", () => {
  test("of an unregistered overseer could not end, so the task is refused", async () => {
    bench.fakes.agents.delete("chief");
    expect(await refusal(create())).toMatchObject({
      reason: "AGENT_NOT_FOUND",
      metadata: { agent: "chief" },
    });
  });
});
