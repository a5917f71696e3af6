import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE } from "../../testing/fakes.ts";
import { limits } from "../../testing/tasks.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const create = (count: number, queue: number) =>
  Promise.all(
    Array.from({ length: count }, (_, index) =>
      bench.tasks.createTask(
        { requestId: `${queue} ${index}`, draft: { agentId: "worker", limits: limits({ queue }) } },
        asCaller(ALICE),
      ),
    ),
  );
const expired = async () =>
  (await bench.tasks.listTasks({ statuses: [TaskStatus.EXPIRED], pageSize: 1000 }, asCaller(ALICE))).tasks
    .length;

test("a limit takes effect to the millisecond, also one that is set during the wait for a later one", async () => {
  await create(1, 900);
  await create(1, 300);
  await bench.pass(299);
  expect(await expired()).toBe(0);
  await bench.pass(1);
  expect(await expired()).toBe(1);
  await bench.pass(599);
  expect(await expired()).toBe(1);
  await bench.pass(1);
  expect(await expired()).toBe(2);
});

test("more expired tasks than one transaction can change all end", async () => {
  await create(230, 500);
  await bench.pass(500);
  expect(await expired()).toBe(230);
});

test("limits that passed during a downtime take effect at the start", async () => {
  await create(3, 500);
  await bench.reopen(() => bench.clock.advance(500));
  expect(await expired()).toBe(3);
});

test("a temporary failure of the store does not stop the timekeeper", async () => {
  await create(1, 500);
  const { engine } = bench.runtime.context;
  const { due } = engine;
  engine.due = () => Promise.reject(new Error("the disk is full"));
  await bench.pass(500);
  expect(await expired()).toBe(0);
  engine.due = due;
  await bench.pass(1000);
  expect(await expired()).toBe(1);
});
