import { create, fromJson } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { anyUnpack, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  BatchCompleteAssignmentsRequestSchema,
  type CompletionOutcome,
  type Lease,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { BadRequestSchema, ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { brokenRules } from "@depute/core";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { claim } from "../queue/claim.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const ME = asCaller(BOB);
const DONE = { full: fromJson(ValueSchema, "HELLO") };

/** Creates `tasks` tasks for Alice and starts them as Bob. Returns the leases. */
async function begun(tasks: number): Promise<Lease[]> {
  const { engine, contextMemory } = bench.runtime.context;
  for (let i = 0; i < tasks; i++) {
    const draft = { capabilityId: "shout", input: fromJson(ValueSchema, "hello") };
    await bench.tasks.createTask({ requestId: `request ${i}`, draft }, asCaller(ALICE));
  }
  const stream = {
    agentId: "bob",
    worker: "w",
    capacity: tasks,
    capabilityIds: [],
    holder: "s",
    begins: true,
  };
  return (await claim(engine, stream, tasks, contextMemory)).map(({ lease }) => lease as Lease);
}

const statusOf = async ({ taskId: value }: Lease) =>
  (await bench.tasks.getTask({ taskId: value }, asCaller(ALICE))).task?.status;

/** Returns a short form of an outcome: its status, or the refusal's reason and named fields. */
function errorOf({ outcome }: CompletionOutcome) {
  if (outcome.case !== "error") return outcome.value;
  const info = outcome.value.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find(Boolean);
  const fields = outcome.value.details.flatMap(
    (detail) => anyUnpack(detail, BadRequestSchema)?.fieldViolations.map(({ field }) => field) ?? [],
  );
  return fields.length === 0 ? info?.reason : { reason: info?.reason, fields };
}

test("the service decides each result separately, and the outcomes are in the order of the requests", async () => {
  const [first, second, third] = (await begun(3)) as [Lease, Lease, Lease];
  const stale = { ...second, epoch: second.epoch + 1n };
  const unfit = { full: fromJson(ValueSchema, 7) };
  const requests = [
    { lease: first, output: DONE },
    { lease: stale, output: DONE },
    { lease: { taskId: "nobody's", epoch: 1n }, output: DONE },
    { lease: third, output: unfit },
    { lease: second, output: DONE },
  ];
  const { outcomes } = await bench.workers.batchCompleteAssignments({ requests }, ME);
  expect(outcomes.map(errorOf)).toEqual([
    TaskStatus.COMPLETED,
    "LEASE_LOST",
    "TASK_NOT_FOUND",
    { reason: "OUTPUT_SCHEMA_VIOLATION", fields: ["output.full"] },
    TaskStatus.COMPLETED,
  ]);
  expect(await Promise.all([first, second, third].map(statusOf))).toEqual([
    TaskStatus.COMPLETED,
    TaskStatus.COMPLETED,
    TaskStatus.RUNNING,
  ]);
});

test("a repeated batch gets the same answer, and a lease that occurs twice completes its task once", async () => {
  const [lease] = (await begun(1)) as [Lease];
  const requests = [
    { lease, output: DONE },
    { lease, output: DONE },
  ];
  const statuses = async () =>
    (await bench.workers.batchCompleteAssignments({ requests }, ME)).outcomes.map(errorOf);
  expect(await statuses()).toEqual([TaskStatus.COMPLETED, TaskStatus.COMPLETED]);
  expect(await statuses()).toEqual([TaskStatus.COMPLETED, TaskStatus.COMPLETED]);
  const events = await bench.runtime.context.engine.events(lease.taskId, 0n, 10);
  expect(events.map(({ payload }) => payload.case)).toEqual(["created", "accepted", "started", "completed"]);
});

test("the tasks of other agents are not found", async () => {
  const [lease] = (await begun(1)) as [Lease];
  const requests = [{ lease, output: DONE }];
  const { outcomes } = await bench.workers.batchCompleteAssignments(
    { requests },
    asCaller(`${"C".repeat(42)}I`),
  );
  expect(outcomes.map(errorOf)).toEqual(["TASK_NOT_FOUND"]);
  expect(await statusOf(lease)).toBe(TaskStatus.RUNNING);
});

test.each([
  ["nothing", 0, "requests"],
  ["more than a hundred requests", 101, "requests"],
  ["a request without an output", 2, "requests[1].output"],
])("the contract refuses %s as a whole", (_name, length, field) => {
  const lease = { taskId: "t", epoch: 1n };
  const requests = Array.from({ length }, (_, i) => (i === 1 ? { lease } : { lease, output: DONE }));
  const request = create(BatchCompleteAssignmentsRequestSchema, { requests });
  const broken = brokenRules(BatchCompleteAssignmentsRequestSchema, request);
  expect(broken.map((rule) => pathToString(rule.field))).toContain(field);
});
