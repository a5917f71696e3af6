import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  AssignmentSchema,
  BatchCompleteAssignmentsRequestSchema,
  LeaseSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { expect, test } from "vitest";
import { type Completion, Completions } from "./completions.ts";
import { type Desk, handIn } from "./hand-in.ts";
import type { WorkResult } from "./work.ts";

const LEASE = create(LeaseSchema, { taskId: "t", epoch: 1n });

/** Which way a result goes, and with whom. */
async function wayOf(
  result: WorkResult,
  task: MessageInitShape<typeof TaskSchema> = {},
  workerToken = "",
): Promise<string> {
  let way = "";
  const alone = {
    async completeAssignment() {
      way = "alone";
      return {};
    },
  };
  const completions = new Completions(async () => []);
  completions.add = async (_, group) => {
    way = `together with those of ${group || "no capability"}`;
    return TaskStatus.COMPLETED;
  };
  const desk = { calls: alone as unknown as Desk["calls"], completions };
  const assignment = create(AssignmentSchema, { task: create(TaskSchema, task), workerToken });
  await handIn(desk, assignment, LEASE, result)();
  return way;
}

const SMALL: WorkResult = { output: { words: 3 }, compact: 3, minimal: "three" };

test.each<[string, ...Parameters<typeof wayOf>]>([
  ["a contract", SMALL, { contractId: "ct_1" }],
  ["an overseer", SMALL, { overseerId: "boss" }],
  ["a delegation", SMALL, { delegationId: "del_1" }],
  ["a worker token", SMALL, {}, "token"],
  ["an execution", SMALL, { executionRequestId: "req_1" }],
  ["an attestation", { ...SMALL, attestationId: "att_000000000000" }],
  ["a delivery", { ...SMALL, delivery: {} }],
  ["much output", { output: "x".repeat(4095) }],
  ["a long short form", { output: null, compact: "x".repeat(4091) }],
  ["a long line", { output: null, minimal: "x".repeat(4093) }],
])("what comes with %s goes alone", async (_, ...work) => {
  expect(await wayOf(...work)).toBe("alone");
});

test("small results of one capability go together", async () => {
  expect(await wayOf(SMALL, { capabilityId: "count" })).toBe("together with those of count");
  expect(await wayOf({ output: "x".repeat(4090) })).toBe("together with those of no capability");
});

test("without a place where results go together, each goes alone", async () => {
  let calls = 0;
  const alone = { completeAssignment: async () => ({ calls: ++calls }) };
  const desk = { calls: alone as unknown as Desk["calls"], completions: undefined };
  await handIn(desk, create(AssignmentSchema, { task: create(TaskSchema) }), LEASE, SMALL)();
  expect(calls).toBe(1);
});

/** Small results that take the most room as messages. */
const LARGEST: [string, WorkResult][] = [
  ["numbers", { output: Array(2045).fill(1) }],
  ["objects", { output: Object.fromEntries(Array.from({ length: 585 }, (_, i) => [i.toString(36), 1])) }],
  ["nested lists", { output: JSON.parse(`${"[".repeat(30)}${"[],".repeat(1340)}1${"]".repeat(30)}`) }],
  ["characters of three bytes", { output: "\u8a9e".repeat(4090) }],
];

test.each(LARGEST)("a call full of %s is no longer than a body may be", async (_, result) => {
  let sent: Completion[] = [];
  const completions = new Completions(async (requests) => {
    sent = requests;
    return [];
  });
  const desk = { calls: {} as Desk["calls"], completions };
  const assignment = create(AssignmentSchema, { task: create(TaskSchema) });
  const all = Array.from({ length: 100 }, () => handIn(desk, assignment, LEASE, result)());
  await Promise.allSettled(all);
  const bytes = toBinary(
    BatchCompleteAssignmentsRequestSchema,
    create(BatchCompleteAssignmentsRequestSchema, { requests: sent }),
  );
  expect(sent).toHaveLength(100);
  expect(bytes.length).toBeLessThan(4 * 1024 * 1024);
});
