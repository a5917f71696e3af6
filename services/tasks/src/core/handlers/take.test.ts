import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";

const [HER, ME] = [asCaller(ALICE), asCaller(BOB)];
let bench: Bench;
let count = 0;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

async function task(): Promise<string> {
  const requestId = `request ${++count}`;
  const draft = { agentId: "bob", description: requestId };
  return (await bench.tasks.createTask({ requestId, draft }, HER)).task?.id ?? "";
}

async function poll(
  options: { capacity?: number; knownIds?: string[]; waitMs?: number; worker?: string } = {},
) {
  const { capacity = 1, knownIds: knownTaskIds = [], waitMs = 0, worker = "w" } = options;
  const request = { agentId: "bob", worker, capacity, knownTaskIds, wait: durationFromMs(waitMs) };
  return (await bench.workers.takeAssignments(request, ME)).assignments;
}
const idsOf = (assignments: Awaited<ReturnType<typeof poll>>) =>
  assignments.map(({ lease }) => lease?.taskId);

test("a poll takes waiting tasks, up to the worker's capacity", async () => {
  const [first, second] = [await task(), await task()];
  expect(idsOf(await poll())).toEqual([first]);
  expect(idsOf(await poll({ knownIds: [first] }))).toEqual([]);
  expect(idsOf(await poll({ worker: "another" }))).toEqual([second]);
});

test("a poll waits for work", async () => {
  const waiting = poll({ waitMs: 9000 });
  const taskId = await task();
  expect(idsOf(await waiting)).toEqual([taskId]);
});

test("a poll after a lost answer returns the same lease, until the task starts or the lease ends", async () => {
  const taskId = await task();
  const [lostTask] = await poll();
  const [again] = await poll();
  expect(again?.lease).toEqual(lostTask?.lease);
  expect(again?.lease?.taskId).toBe(taskId);
  if (again?.lease === undefined) throw new Error("no lease");
  await bench.workers.startAssignment({ lease: again.lease }, ME);
  expect(await poll()).toEqual([]);
});

test("the tasks of another agent are not assigned", async () => {
  const request = { agentId: "bob", worker: "w" };
  expect(await refusal(bench.workers.takeAssignments(request, HER))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
  });
  const absentAgent = { agentId: "gone", worker: "w" };
  expect(await refusal(bench.workers.takeAssignments(absentAgent, HER))).toMatchObject({
    reason: "AGENT_NOT_FOUND",
  });
});
