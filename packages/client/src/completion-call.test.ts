import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  AssignmentSchema,
  BatchCompleteAssignmentsRequestSchema,
  LeaseSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { expect, test } from "vitest";
import { type CompletionCalls, completionCallOf } from "./completion-call.ts";
import { type Completion, Completions } from "./completions.ts";
import type { WorkResult } from "./work.ts";

const LEASE = create(LeaseSchema, { taskId: "t", epoch: 1n });

/**
 * Returns how the client sends a result: alone, or in a batch. For a batch, the text names the capability of the
 * batch.
 */
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
  const rpcs = { calls: alone as unknown as CompletionCalls["calls"], completions };
  const assignment = create(AssignmentSchema, { task: create(TaskSchema, task), workerToken });
  await completionCallOf(rpcs, assignment, LEASE, result)();
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
  ["a long minimal form", { output: null, compact: "x".repeat(4091) }],
  ["a long line", { output: null, minimal: "x".repeat(4093) }],
])("a result with %s is sent alone", async (_, ...work) => {
  expect(await wayOf(...work)).toBe("alone");
});

test("small results of one capability share a call", async () => {
  expect(await wayOf(SMALL, { capabilityId: "count" })).toBe("together with those of count");
  expect(await wayOf({ output: "x".repeat(4090) })).toBe("together with those of no capability");
});

test("without a batch, each result is sent alone", async () => {
  let calls = 0;
  const alone = { completeAssignment: async () => ({ calls: ++calls }) };
  const rpcs = { calls: alone as unknown as CompletionCalls["calls"], completions: undefined };
  await completionCallOf(rpcs, create(AssignmentSchema, { task: create(TaskSchema) }), LEASE, SMALL)();
  expect(calls).toBe(1);
});

/** Results whose JSON is short enough for a batch, but whose encoded messages are the largest possible. */
const LARGEST: [string, WorkResult][] = [
  ["numbers", { output: Array(2045).fill(1) }],
  ["objects", { output: Object.fromEntries(Array.from({ length: 585 }, (_, i) => [i.toString(36), 1])) }],
  ["nested lists", { output: JSON.parse(`${"[".repeat(30)}${"[],".repeat(1340)}1${"]".repeat(30)}`) }],
  ["characters of three bytes", { output: "\u8a9e".repeat(4090) }],
];

test.each(LARGEST)("a call full of %s stays within the limit of a body", async (_, result) => {
  let sent: Completion[] = [];
  const completions = new Completions(async (requests) => {
    sent = requests;
    return [];
  });
  const rpcs = { calls: {} as CompletionCalls["calls"], completions };
  const assignment = create(AssignmentSchema, { task: create(TaskSchema) });
  const all = Array.from({ length: 100 }, () => completionCallOf(rpcs, assignment, LEASE, result)());
  await Promise.allSettled(all);
  const bytes = toBinary(
    BatchCompleteAssignmentsRequestSchema,
    create(BatchCompleteAssignmentsRequestSchema, { requests: sent }),
  );
  expect(sent).toHaveLength(100);
  expect(bytes.length).toBeLessThan(4 * 1024 * 1024);
});
