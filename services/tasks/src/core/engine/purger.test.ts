import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { FOUND, row, text } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, begin, DAY_MS, openBench } from "../../testing/bench.ts";
import { collect, refusal } from "../../testing/platform.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const draft = {
  agentId: "worker",
  description: "secret words",
  externalId: "mine",
  input: fromJson(ValueSchema, "in"),
};
const create = async () => (await bench.tasks.createTask({ requestId: "one", draft })).task?.id ?? "";
const get = async (value: string) => (await bench.tasks.getTask({ taskId: value })).task;

async function pass(ms: number): Promise<void> {
  await bench.pass(ms);
  await bench.runtime.purger.idle();
}

async function completed(): Promise<string> {
  const taskId = await create();
  const lease = await begin(bench, "worker");
  await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "out") } });
  return taskId;
}

test("a task is complete for its retention, then a tombstone, then deleted", async () => {
  const taskId = await completed();
  await pass(DAY_MS - 120_000);
  expect(await get(taskId)).toMatchObject({ description: "secret words", output: {} });
  await pass(180_000);
  const tombstone = await get(taskId);
  expect(tombstone).toMatchObject({ status: TaskStatus.COMPLETED, description: "", lastSequence: 4n });
  expect(tombstone?.purgeTime).toBeDefined();
  expect(tombstone?.input ?? tombstone?.output).toBeUndefined();
  expect((await bench.tasks.createTask({ requestId: "one", draft })).task?.id).toBe(taskId);
  await pass(DAY_MS + 120_000);
  expect(await refusal(get(taskId))).toMatchObject({ reason: "TASK_NOT_FOUND" });
  expect(await create()).not.toBe(taskId);
});

test("a watch of purged events is refused; a watch after them is not", async () => {
  const taskId = await completed();
  await pass(DAY_MS + 120_000);
  expect(await refusal(bench.tasks.watchTask({ taskId }))).toMatchObject({
    reason: "EVENTS_PURGED",
    metadata: { first_sequence: "5" },
  });
  expect(await refusal(bench.tasks.delegateTask({ requestId: "one", draft }))).toMatchObject({
    reason: "EVENTS_PURGED",
  });
  expect(await collect(bench.tasks.watchTask({ taskId, afterSequence: 4n }))).toEqual([]);
});

test("a purged task leaves only its own row", async () => {
  const taskId = await completed();
  await pass(DAY_MS + 120_000);
  const { store } = bench.runtime.context.engine;
  const tables = await store.read((tx) =>
    tx.all(
      row({ name: text }),
      "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE c.name = 'task_id' AND m.type = 'table'",
    ),
  );
  const remainingIds = [];
  for (const { name } of tables) {
    const rows = await store.read((tx) => tx.all(FOUND, `SELECT 1 FROM ${name} WHERE task_id = ?`, [taskId]));
    if (rows.length > 0) remainingIds.push(name);
  }
  expect(remainingIds.sort()).toEqual(["task_requests", "tasks"]);
});

test("an output schema is deleted with the last task that needs it", async () => {
  const schemas = () =>
    bench.runtime.context.engine.store.read((tx) => tx.all(FOUND, "SELECT digest FROM output_schemas"));
  const shout = async (requestId: string) => {
    await bench.tasks.createTask({
      requestId,
      draft: { capabilityId: "shout", input: fromJson(ValueSchema, "a") },
    });
    const lease = await begin(bench, "bob");
    await bench.workers.completeAssignment({ lease, output: { full: fromJson(ValueSchema, "A") } });
  };
  await shout("first");
  await bench.pass(DAY_MS / 2);
  await shout("second");
  await pass(DAY_MS / 2 + 120_000);
  expect(await schemas()).toHaveLength(1);
  await pass(DAY_MS / 2);
  expect(await schemas()).toEqual([]);
});

test("an open task is never purged", async () => {
  const { task } = await bench.tasks.createTask({
    requestId: "long",
    draft: { agentId: "worker", description: "long", limits: { total: { seconds: BigInt(20 * 86_400) } } },
  });
  await pass(10 * DAY_MS);
  expect(await get(task?.id ?? "")).toMatchObject({ status: TaskStatus.PENDING, description: "long" });
});
