import { clientsOver, startWorker, type Work, type Worker } from "@depute/client";
import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { createGrpcJsTransport } from "@depute/grpc-js";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await startPlatform();
});
afterAll(() => platform.stop());

/** Every test has its own agent, because a worker that is still closing could take another test's work. */
let agentId = "";
let agents = 0;
beforeEach(async () => {
  agentId = `quick-${++agents}`;
  await introduce(platform, agentId, [["double"]]);
});

let worker: Worker | undefined;
afterEach(async () => {
  await worker?.stop(0);
  worker = undefined;
});

/** Starts a worker on its own socket, and counts its calls by method. */
function startCounted(work: Work, capacity = 1) {
  const calls: Record<string, number> = {};
  const transport = createGrpcJsTransport(new URL(platform.url).host, {
    interceptors: [
      (next) => (request) => {
        calls[request.method.name] = (calls[request.method.name] ?? 0) + 1;
        return next(request);
      },
    ],
  });
  const { workers } = clientsOver(transport);
  const started = startWorker({ calls: workers, agentId, work, capacity });
  worker = {
    async stop(graceMs) {
      await started.stop(graceMs);
      transport.close();
    },
  };
  return calls;
}

let requests = 0;

/** Creates a task whose input is a number; returns the task's id. */
async function ask(n: number): Promise<string> {
  const draft = { agentId, capabilityId: "double", input: value({ n }), retry: { maxAttempts: 1 } };
  const { task } = await platform.clients.tasks.createTask({ requestId: `quick ${++requests}`, draft });
  return task?.id ?? "";
}

async function taskOf(id: string): Promise<Task | undefined> {
  return (await platform.clients.tasks.getTask({ taskId: id })).task;
}

/** Waits until a task has ended. Returns the task. */
async function ended(id: string): Promise<Task | undefined> {
  for await (const _ of platform.clients.tasks.watchTask({ taskId: id }));
  return taskOf(id);
}

const double: Work = async (input) => {
  const { n } = input as { n: number };
  return { output: { n: 2 * n } };
};

test("short tasks arrive running, and are completed together with others", async () => {
  const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(n)));
  const calls = startCounted(double, 40);
  const tasks = await Promise.all(ids.map(ended));
  await worker?.stop();
  expect(tasks.map((task) => task?.status)).toEqual(ids.map(() => TaskStatus.COMPLETED));
  expect(tasks[21]?.output?.full).toMatchObject(value({ n: 42 }));
  expect(calls).not.toHaveProperty("StartAssignment");
  expect(calls).not.toHaveProperty("CompleteAssignment");
  expect(calls.BatchCompleteAssignments).toBeLessThan(40);
});

test("a refused result does not affect the others of its batch", async () => {
  const long = "x".repeat(2001);
  const ids = await Promise.all(Array.from({ length: 12 }, (_, n) => ask(n)));
  startCounted(async (input, context) => {
    const { output } = await double(input, context);
    const { n } = input as { n: number };
    if (n === 3) return { output: "no object" };
    return n === 7 ? { output, minimal: long } : { output };
  }, 12);
  const statuses = (await Promise.all(ids.map(ended))).map((task) => task?.status);
  const expected = ids.map((_, n) => (n === 3 || n === 7 ? TaskStatus.FAILED : TaskStatus.COMPLETED));
  expect(statuses).toEqual(expected);
});

test("a running task that is released waits again, unchanged, for the next worker", async () => {
  const working = Promise.withResolvers<void>();
  startCounted((_, { signal }) => {
    working.resolve();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const id = await ask(1);
  await working.promise;
  expect((await taskOf(id))?.status).toBe(TaskStatus.RUNNING);
  await worker?.stop(0);
  expect(await taskOf(id)).toMatchObject({ status: TaskStatus.PENDING, attempt: 0 });
  startCounted(double);
  expect(await ended(id)).toMatchObject({ status: TaskStatus.COMPLETED, attempt: 1 });
});

test("a cancelled task is reported to its worker at once, even before the first heartbeat", async () => {
  const stopped = Promise.withResolvers<unknown>();
  const working = Promise.withResolvers<void>();
  startCounted((_, { signal }) => {
    working.resolve();
    return new Promise((_, reject) =>
      signal.addEventListener("abort", () => {
        stopped.resolve(signal.reason);
        reject(signal.reason);
      }),
    );
  });
  const id = await ask(1);
  await working.promise;
  await platform.clients.tasks.cancelTask({ taskId: id, reason: "not needed" });
  // The cancellation arrives at once. Otherwise the first heartbeat, after 10 seconds, would report it.
  expect(await stopped.promise).toMatchObject({ message: "the task was cancelled; stop the work" });
});

test("a worker that stops during a burst of tasks leaves none of them open", async () => {
  startCounted(double, 100);
  const ids: string[] = [];
  let stopped: Promise<void> | undefined;
  const lane = async () => {
    while (ids.length < 300) {
      ids.push(await ask(ids.length));
      if (ids.length > 100) stopped ??= worker?.stop();
    }
  };
  await Promise.all(Array.from({ length: 24 }, lane));
  await stopped;
  const tasks = await Promise.all(ids.map(taskOf));
  const openTasks = tasks.filter((task) => task?.status !== TaskStatus.COMPLETED);
  expect(openTasks.map((task) => [task?.status, task?.attempt])).toEqual(
    openTasks.map(() => [TaskStatus.PENDING, 0]),
  );
  startCounted(double, 100);
  const after = await Promise.all(ids.map(ended));
  expect(after.map((task) => [task?.status, task?.attempt])).toEqual(
    ids.map(() => [TaskStatus.COMPLETED, 1]),
  );
});
