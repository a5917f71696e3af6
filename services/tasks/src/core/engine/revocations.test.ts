import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT, Fakes } from "../../testing/fakes.ts";

let bench: Bench;
afterEach(() => bench.close());

let fakes: Fakes;
beforeEach(() => {
  fakes = new Fakes();
  fakes.tokens.set("one", { delegatee: BOB, block: "block-1" });
  fakes.tokens.set("two", { delegatee: BOB, block: "block-2" });
});

let count = 0;
async function task(workerToken: string): Promise<string> {
  const draft = { agentId: "bob", contractId: CONTRACT, workerToken };
  const { task: createdTask } = await bench.tasks.createTask(
    { requestId: `r${++count}`, draft },
    asCaller(ALICE),
  );
  return createdTask?.id ?? "";
}
const statusOf = async (taskId: string) =>
  (await bench.tasks.getTask({ taskId }, asCaller(ALICE))).task?.status;

/**
 * Advances the fake clock until the check passes. The revocation follower waits by this clock, so the test takes no
 * real time.
 */
const eventually = (check: () => Promise<void> | void) =>
  vi.waitFor(async () => {
    await bench.pass(250);
    await check();
  });

test("a revoked block ends the open tasks that depend on it, and no others", async () => {
  bench = await openBench(fakes);
  const [first, second, other] = [await task("one"), await task("one"), await task("two")];
  const ended = await task("one");
  await bench.tasks.cancelTask({ taskId: ended }, asCaller(ALICE));
  fakes.revoke("block-1");
  await eventually(async () => {
    expect(await statusOf(first)).toBe(TaskStatus.REVOKED);
    expect(await statusOf(second)).toBe(TaskStatus.REVOKED);
  });
  expect(await statusOf(other)).toBe(TaskStatus.PENDING);
  expect(await statusOf(ended)).toBe(TaskStatus.CANCELLED);
});

test("more tasks than one transaction can change all end", async () => {
  bench = await openBench(fakes);
  const ids = await Promise.all(Array.from({ length: 230 }, () => task("one")));
  fakes.revoke("block-1");
  await eventually(async () => {
    for (const id of ids) expect(await statusOf(id)).toBe(TaskStatus.REVOKED);
  });
});

test("revocations of the downtime take effect after a restart, from the cursor on", async () => {
  bench = await openBench(fakes);
  const [first, second] = [await task("one"), await task("two")];
  fakes.revoke("block-1");
  await eventually(async () => expect(await statusOf(first)).toBe(TaskStatus.REVOKED));
  await bench.reopen(() => fakes.revoke("block-2"));
  await eventually(async () => expect(await statusOf(second)).toBe(TaskStatus.REVOKED));
  await bench.reopen();
  await eventually(() => expect(fakes.openedAfter.at(-1)).toBe(2));
  expect(fakes.openedAfter[0]).toBe(0);
});

test("the watch of revocations is retried while the tokens service is unavailable", async () => {
  fakes.away.add("tokens");
  bench = await openBench(fakes);
  await bench.pass(60_000);
  expect(fakes.openedAfter).toEqual([]);
  fakes.away.clear();
  const taskId = await task("one");
  fakes.revoke("block-1");
  await eventually(async () => {
    await bench.pass(30_000);
    expect(await statusOf(taskId)).toBe(TaskStatus.REVOKED);
  });
});
