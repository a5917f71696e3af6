import { fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import type { EndAttestedTaskRequestSchema } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { ReviewVerdict } from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { decide } from "../../testing/reviews.ts";

const CHIEF = `${"D".repeat(42)}M`;
const [HER, ME, BOSS] = [asCaller(ALICE), asCaller(BOB), asCaller(CHIEF)];
const ATTESTATION = "att_0123456789ab";
const OTHER = "att_ba9876543210";

let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.agents.set("chief", { principal: CHIEF, active: true });
  bench.fakes.tokens.set("sound", { delegatee: BOB, block: "block-1" });
});
afterEach(() => bench.close());

const value = (json: JsonValue) => fromJson(ValueSchema, json);

async function create(draft: MessageInitShape<typeof TaskDraftSchema> = {}): Promise<string> {
  const fullDraft = {
    ...{ capabilityId: "shout", input: value("hello"), contractId: CONTRACT, workerToken: "sound" },
    ...draft,
  };
  return (await bench.tasks.createTask({ requestId: `r${++count}`, draft: fullDraft }, HER)).task?.id ?? "";
}

type More = MessageInitShape<typeof EndAttestedTaskRequestSchema>;
const end = async (more: More = {}, options = {}) => {
  const outcome = { case: "completed", value: { output: value("HELLO") } } as const;
  const request = { revocationId: "block-1", attestationId: ATTESTATION, outcome, ...more };
  return (await bench.workers.endAttestedTask(request, options)).task;
};
const FAILED = { case: "failed", value: { reason: "TASK_FAILED", message: "broken" } } as const;
const get = async (taskId: string, options = HER) => (await bench.tasks.getTask({ taskId }, options)).task;
const kinds = async (taskId: string) =>
  (await bench.runtime.context.engine.events(taskId, 0n, 100)).map(({ payload }) => payload.case);

describe("the task under an attested delegation", () => {
  const STATES: [string, (taskId: string) => Promise<unknown>][] = [
    ["waits for a worker", async () => {}],
    ["is dispatched", () => take(bench, "bob")],
    ["runs", () => begin(bench, "bob", ME)],
    [
      "waits for an answer",
      async () => {
        const lease = await begin(bench, "bob", ME);
        await bench.workers.requestInput({ lease, question: { prompt: "which?" } }, ME);
      },
    ],
    [
      "is suspended",
      async () => {
        const lease = await begin(bench, "bob", ME);
        await bench.workers.suspendAssignment({ lease, reason: "later" }, ME);
      },
    ],
  ];

  test.each(STATES)("completes once when it %s", async (_, reach) => {
    const taskId = await create();
    await reach(taskId);
    expect(await end()).toMatchObject({ id: taskId, status: TaskStatus.COMPLETED });
    const log = await kinds(taskId);
    expect(await end()).toMatchObject({ id: taskId, status: TaskStatus.COMPLETED });
    expect(await kinds(taskId)).toEqual(log);
    expect(log.filter((kind) => kind === "completed")).toHaveLength(1);
    expect(await get(taskId)).toMatchObject({
      ...{ attestationId: ATTESTATION, output: { full: value("HELLO") } },
    });
  });

  test.each(STATES)(
    "fails without a retry when it %s and the delegatee attests a failure",
    async (_, reach) => {
      const taskId = await create({ retry: { maxAttempts: 5 } });
      await reach(taskId);
      const failed = {
        status: TaskStatus.FAILED,
        ...{ attestationId: ATTESTATION, failure: { reason: "TASK_FAILED", message: "broken" } },
      };
      expect(await end({ outcome: FAILED })).toMatchObject(failed);
      expect(await end({ outcome: FAILED })).toMatchObject(failed);
      expect(await get(taskId)).toMatchObject(failed);
    },
  );

  test.each([
    ["completed", {}, DelegationStatus.COMPLETED],
    ["failed", { outcome: FAILED }, DelegationStatus.FAILED],
  ])("that is %s ends its delegation, with the attestation", async (_, more: More, status) => {
    await create();
    await end(more);
    const expectedEnds = [{ revocationId: "block-1", status, attestationId: ATTESTATION }];
    await vi.waitFor(async () => {
      await bench.pass(250);
      expect(bench.fakes.finished).toEqual(expectedEnds);
    });
    // The tokens service has received the end of the delegation. So the tasks service no longer finds a task under this
    // delegation.
    await vi.waitFor(async () => expect(await end(more)).toBeUndefined());
  });

  test("is absent for a delegation without a task", async () => {
    expect(await end({ revocationId: "block-9" })).toBeUndefined();
  });

  test("that has ended is not changed by another attestation", async () => {
    await create();
    bench.fakes.away.add("tokens");
    await end();
    for (const outcome of [FAILED, { case: "completed", value: { output: value("BYE") } } as const]) {
      expect(await refusal(end({ attestationId: OTHER, outcome }))).toMatchObject({
        reason: "TASK_STATE_CONFLICT",
        metadata: { from: "completed" },
      });
    }
  });

  test("is unique: several tasks under one delegation are ended by their workers", async () => {
    const ids = [await create(), await create()];
    expect(await refusal(end())).toMatchObject({ reason: "TASK_STATE_CONFLICT" });
    await bench.tasks.cancelTask({ taskId: ids[0] ?? "" }, HER);
    expect(await end()).toMatchObject({ id: ids[1], status: TaskStatus.COMPLETED });
  });

  test("is not ended by a caller other than the verifier", async () => {
    const taskId = await create();
    for (const caller of [HER, ME, BOSS]) {
      expect(await refusal(end({}, caller))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    }
    expect(await kinds(taskId)).toEqual(["created"]);
  });
});

describe("an attested result", () => {
  test("fits the capability's output schema, or the task is unchanged", async () => {
    const taskId = await create();
    const outcome = { case: "completed", value: { output: value(3) } } as const;
    expect(await refusal(end({ outcome }))).toMatchObject({ reason: "OUTPUT_SCHEMA_VIOLATION" });
    expect(await kinds(taskId)).toEqual(["created"]);
  });

  test("costs at most the task's budget, or the task is unchanged", async () => {
    const taskId = await create({ spend: { maxCostMicrocents: 100n } });
    expect(await refusal(end({ usage: { costMicrocents: 101n } }))).toMatchObject({
      reason: "BUDGET_EXCEEDED",
      metadata: { needed: "101", allowed: "100" },
    });
    expect(await kinds(taskId)).toEqual(["created"]);
    expect(await end({ usage: { costMicrocents: 100n } })).toMatchObject({ status: TaskStatus.COMPLETED });
  });

  test("counts against the budget of the parent task, also without a worker", async () => {
    const root = { agentId: "worker", capabilityId: "", workerToken: "", contractId: "" };
    const parentTaskId = await create({ ...root, spend: { maxCostMicrocents: 100n } });
    await create({ parentTaskId });
    await end({ usage: { costMicrocents: 60n } });
    const lease = await begin(bench, "worker");
    const { spendLeft } = await bench.workers.heartbeatAssignment({ lease });
    expect(spendLeft).toMatchObject({ maxCostMicrocents: 40n });
  });
});

describe("a result of an agent with an overseer", () => {
  beforeEach(() => {
    bench.fakes.agents.set("bob", { principal: BOB, active: true, overseer: "chief" });
  });

  test("is held, and ends the delegation when it is approved", async () => {
    const taskId = await create();
    expect(await end()).toMatchObject({ status: TaskStatus.IN_REVIEW });
    expect(await end()).toMatchObject({ status: TaskStatus.IN_REVIEW });
    expect((await get(taskId))?.output).toBeUndefined();
    await decide(bench, taskId, ReviewVerdict.APPROVED);
    expect(await get(taskId)).toMatchObject({ status: TaskStatus.COMPLETED, attestationId: ATTESTATION });
    const expectedEnds = [
      { revocationId: "block-1", status: DelegationStatus.COMPLETED, attestationId: ATTESTATION },
    ];
    await vi.waitFor(async () => {
      await bench.pass(250);
      expect(bench.fakes.finished).toEqual(expectedEnds);
    });
  });

  test("that is held is decided by the overseer, whatever another attestation says", async () => {
    const taskId = await create();
    await end();
    for (const outcome of [FAILED, { case: "completed", value: { output: value("BYE") } } as const]) {
      expect(await refusal(end({ attestationId: OTHER, outcome }))).toMatchObject({
        reason: "TASK_STATE_CONFLICT",
        metadata: { from: "in_review" },
      });
    }
    await decide(bench, taskId, ReviewVerdict.CHANGES_REQUESTED);
    // No worker had the task, so no attempt was counted and none is subtracted.
    expect(await get(taskId)).toMatchObject({ status: TaskStatus.PENDING, attempt: 0 });
    expect(await end({ attestationId: OTHER })).toMatchObject({ status: TaskStatus.IN_REVIEW });
  });
});
