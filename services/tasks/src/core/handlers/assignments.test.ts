import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { as, collect, type Platform, refusal, startPlatform } from "../../testing/platform.ts";

let platform: Platform;
const open: AbortController[] = [];
beforeEach(async () => {
  platform = await startPlatform();
});
afterEach(async () => {
  for (const controller of open.splice(0)) controller.abort();
  await platform.stop();
});

const hello = fromJson(ValueSchema, "hello");
let count = 0;

async function task(capabilityId = "shout"): Promise<string> {
  const target = capabilityId === "" ? { agentId: "bob" } : { capabilityId, input: hello };
  const request = { requestId: `request ${++count}`, draft: target };
  return (await platform.tasks.createTask(request, as(ALICE))).task?.id ?? "";
}

/** Opens a worker stream for Bob and returns its assignments one by one. */
function worker(options: { capacity?: number; capabilityIds?: string[]; begin?: boolean } = {}) {
  const controller = new AbortController();
  open.push(controller);
  const stream = platform.workers.watchAssignments(
    { agentId: "bob", worker: `worker ${++count}`, ...options },
    { ...as(BOB), signal: controller.signal },
  );
  const iterator = stream[Symbol.asyncIterator]();
  return {
    async next(): Promise<Assignment> {
      const { value } = await iterator.next();
      if (value?.assignment === undefined) throw new Error("the stream ended");
      return value.assignment;
    },
    stop: () => controller.abort(),
  };
}

describe("a worker's stream", () => {
  test("sends the waiting tasks, oldest first, and then each new task, up to its capacity", async () => {
    const [first, second] = [await task(), await task()];
    const { next } = worker({ capacity: 2 });
    const [one, two] = [await next(), await next()];
    expect([one.lease?.taskId, two.lease?.taskId]).toEqual([first, second]);
    const third = await task();
    const pending = next();
    const { lease } = one;
    await platform.workers.startAssignment({ lease: lease as never }, as(BOB));
    const { task: waiting } = await platform.tasks.getTask({ taskId: third }, as(ALICE));
    expect(waiting?.status).toBe(TaskStatus.PENDING);
    await platform.workers.completeAssignment({ lease: lease as never, output: { full: hello } }, as(BOB));
    expect((await pending).lease?.taskId).toBe(third);
  });

  test("follows the delegate's limits, also when they change while it is open", async () => {
    const limit = (limits: object) => platform.workers.setDelegateLimits({ agentId: "bob", limits }, as(BOB));
    const standing = async (id: string) =>
      (await platform.tasks.getTask({ taskId: id }, as(ALICE))).task?.status;
    const { next } = worker({ capacity: 5 });
    const [first] = [await task(), await next()];
    expect(await standing(first)).toBe(TaskStatus.ACCEPTED);
    await limit({ draining: true });
    const drained = await task();
    expect(await standing(drained)).toBe(TaskStatus.PENDING);
    await limit({ maxHeld: 2 });
    expect((await next()).lease?.taskId).toBe(drained);
    const tooMany = await task();
    expect(await standing(tooMany)).toBe(TaskStatus.PENDING);
    await limit({});
    expect((await next()).lease?.taskId).toBe(tooMany);
    const last = await task();
    expect((await next()).lease?.taskId).toBe(last);
  });

  test("two workers never get the same task", async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => task()));
    const workers = [worker({ capacity: 10 }), worker({ capacity: 10 })];
    const assignmentLists = await Promise.all(
      workers.map(async ({ next }) => {
        const mine: (string | undefined)[] = [];
        for (let i = 0; i < 10; i++) mine.push((await next()).lease?.taskId);
        return mine;
      }),
    );
    expect(assignmentLists.flat().toSorted()).toEqual(ids.toSorted());
  });

  test("sends only tasks of the capabilities that it names", async () => {
    await task("");
    const shout = await task();
    expect((await worker({ capabilityIds: ["whisper", "shout"] }).next()).lease?.taskId).toBe(shout);
  });

  test("that ends in order loses no task that is dispatched meanwhile", async () => {
    const request = { agentId: "bob", capacity: 100, begin: true, streamId: "mine" };
    const assignmentsOfBob = collect(platform.workers.watchAssignments(request, as(BOB)));
    const first = await task();
    const creating = Array.from({ length: 60 }, () => task());
    await Promise.all(creating.slice(0, 20));
    await platform.workers.endAssignments({ agentId: "bob", streamId: "mine" }, as(BOB));
    const received = (await assignmentsOfBob).map(({ assignment }) => assignment?.lease?.taskId);
    const ids = [first, ...(await Promise.all(creating))];
    expect(received).toContain(first);
    await vi.waitFor(async () => {
      const { tasks } = await platform.tasks.listTasks({ pageSize: 100 }, as(ALICE));
      const waiting = tasks.filter(({ status }) => status === TaskStatus.PENDING).map(({ id }) => id);
      expect([...received, ...waiting].toSorted()).toEqual(ids.toSorted());
      // A released assignment does not count as an attempt.
      const attempts = tasks.map(
        ({ status, attempt }) => attempt === (status === TaskStatus.PENDING ? 0 : 1),
      );
      expect(attempts).not.toContain(false);
    });
  });

  test("ends by its own id and its own agent alone, and a repeated end succeeds", async () => {
    const request = { agentId: "bob", capacity: 1, streamId: "mine" };
    const assignmentsOfBob = collect(platform.workers.watchAssignments(request, as(BOB)));
    const end = (streamId: string, caller = BOB) =>
      platform.workers.endAssignments({ agentId: "bob", streamId }, as(caller));
    expect(await refusal(end("mine", ALICE))).toMatchObject({ reason: "CALLER_NOT_ALLOWED" });
    await end("another");
    const taskId = await task();
    await vi.waitFor(async () => {
      const name = { taskId };
      expect((await platform.tasks.getTask(name, as(ALICE))).task?.status).toBe(TaskStatus.ACCEPTED);
    });
    await end("mine");
    await end("mine");
    expect((await assignmentsOfBob).map(({ assignment }) => assignment?.lease?.taskId)).toEqual([taskId]);
  });

  test("can end without an effect on the lease, which another connection can use", async () => {
    const taskId = await task();
    const { next, stop } = worker();
    const { lease } = await next();
    stop();
    await platform.workers.startAssignment({ lease: lease as never }, as(BOB));
    await platform.workers.completeAssignment({ lease: lease as never, output: { full: hello } }, as(BOB));
    const { task: endedTask } = await platform.tasks.getTask({ taskId }, as(ALICE));
    expect(endedTask?.status).toBe(TaskStatus.COMPLETED);
  });

  test.each([
    ["another principal's agent", "bob", ALICE, "CALLER_NOT_ALLOWED"],
    ["an agent without a key", "worker", ALICE, "CALLER_NOT_ALLOWED"],
    ["an unknown agent", "nobody", ALICE, "AGENT_NOT_FOUND"],
    ["a removed agent", "gone", ALICE, "AGENT_NOT_FOUND"],
    ["no agent", "", ALICE, "INVALID_REQUEST"],
  ])("is not opened for %s", async (_name, agentId, caller, reason) => {
    const stream = platform.workers.watchAssignments({ agentId }, as(caller));
    expect((await refusal(stream)).reason).toBe(reason);
  });
});

test("a worker without credentials on an open loopback may work for any agent", async () => {
  const taskId = await task();
  const controller = new AbortController();
  open.push(controller);
  for await (const { assignment } of platform.workers.watchAssignments(
    { agentId: "bob" },
    { signal: controller.signal },
  )) {
    expect(assignment?.lease?.taskId).toBe(taskId);
    break;
  }
});

test("a task that a closed stream claimed and did not send waits again, and uses no attempt", async () => {
  const bench = await openBench();
  try {
    const ids: (string | undefined)[] = [];
    for (const requestId of ["one", "two", "three"]) {
      ids.push((await bench.tasks.createTask({ requestId, draft: { agentId: "worker" } })).task?.id);
    }
    const { signal, abort } = aborter();
    const stream = bench.workers.watchAssignments({ agentId: "worker", capacity: 3 }, { signal });
    const [firstAssignment] = await collect(stream, 1);
    abort();
    expect(firstAssignment?.assignment?.lease?.taskId).toBe(ids[0]);
    await vi.waitFor(async () => {
      const { tasks } = await bench.tasks.listTasks({ statuses: [TaskStatus.PENDING] });
      expect(tasks.map(({ id, attempt }) => [id, attempt])).toEqual([
        [ids[2], 0],
        [ids[1], 0],
      ]);
    });
  } finally {
    await bench.close();
  }
});

test("a server that drains ends the streams with a reason", async () => {
  const taskId = await task();
  const { next } = worker();
  await next();
  const watch = platform.tasks.watchTask({ taskId, afterSequence: 1n }, as(ALICE))[Symbol.asyncIterator]();
  expect((await watch.next()).value?.taskEvent?.status).toBe(TaskStatus.ACCEPTED);
  const ends = [refusal(watch.next()), refusal(next())];
  await platform.stopServer();
  for (const { reason } of await Promise.all(ends)) expect(reason).toBe("SHUTTING_DOWN");
});

function aborter() {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort() };
}

describe("a worker that begins at once", () => {
  test("gets running tasks, with both events, and completes them without a start", async () => {
    const taskId = await task();
    const { next } = worker({ begin: true });
    const { lease, task: assignedTask } = await next();
    expect(assignedTask).toMatchObject({ status: TaskStatus.RUNNING, attempt: 1 });
    await platform.workers.completeAssignment({ lease: lease as never, output: { full: hello } }, as(BOB));
    const events = await collect(platform.tasks.watchTask({ taskId }, as(ALICE)), 4);
    expect(events.map(({ taskEvent }) => taskEvent?.payload.case)).toEqual([
      ...["created", "accepted", "started", "completed"],
    ]);
  });

  test("receives again, by a poll, each task that it does not list as known", async () => {
    const taskId = await task();
    const poll = async (knownTaskIds: string[]) => {
      const request = { agentId: "bob", worker: "w", capacity: 2, begin: true, knownTaskIds, wait: {} };
      const { assignments } = await platform.workers.takeAssignments(request, as(BOB));
      return assignments.map(({ lease }) => [lease?.taskId, lease?.epoch]);
    };
    expect(await poll([])).toEqual([[taskId, 1n]]);
    expect(await poll([])).toEqual([[taskId, 1n]]);
    expect(await poll([taskId])).toEqual([]);
  });
});
