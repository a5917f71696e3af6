import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, openBench } from "../../testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

/** The default of `DEPUTE_TASKS_POLL_INTERVAL` in milliseconds. */
const POLL_MS = 2_000;
const OUTPUT = { full: { kind: { case: "stringValue", value: "done" } } } as const;
const create = async (requestId: string) =>
  (await bench.tasks.createTask({ requestId, draft: { agentId: "worker", description: "do" } })).task?.id;

test("a dispatch that another function's failure undid runs again, without a poll", async () => {
  const leaving = new AbortController();
  const request = { agentId: "worker", capacity: 1, begin: true };
  const assignments = bench.workers
    .watchAssignments(request, { signal: leaving.signal })
    [Symbol.asyncIterator]();
  const next = async () => {
    for (;;) {
      const { value } = await assignments.next();
      if (value?.assignment !== undefined) return value.assignment;
    }
  };
  await create("first");
  const first = await next();
  const second = await create("second");
  const { store } = bench.runtime.context.engine;
  const refused = Promise.withResolvers<unknown>();
  // The functions of one commit group, in this order: the completion, `between`, the dispatch, and `failing`.
  const completed = bench.workers.completeAssignment({ lease: first.lease, output: OUTPUT });
  const failing = () =>
    store.write(
      async (tx) => {
        await tx.run("DELETE FROM tasks WHERE task_id = 'none'");
        throw new Error("refused");
      },
      { isRepeatable: true },
    );
  const between = store.write(async (tx) => tx.afterRun(() => void failing().catch(refused.resolve)), {
    isRepeatable: true,
  });
  await Promise.all([completed, between]);
  expect(await refused.promise).toMatchObject({ message: "refused" });
  expect((await next()).task?.id).toBe(second);
  leaving.abort();
});

test("one poll finds the waiting tasks of all agents with streams, even if nothing announced them", async () => {
  const { store } = bench.runtime.context.engine;
  const agents = ["worker", "reviewer"];
  bench.fakes.agents.set("reviewer", { principal: "", active: true });
  const later = new Set<string>();
  for (const agentId of agents) {
    const draft = { agentId, description: "do" };
    await bench.tasks.createTask({ requestId: `${agentId} 1`, draft });
    const { task } = await bench.tasks.createTask({ requestId: `${agentId} 2`, draft });
    later.add(task?.id ?? "");
  }
  /** Sets the time from which workers may take the later tasks, without a wake-up. */
  const availableFrom = async (queuedMs: number) => {
    for (const taskId of later)
      await store.write((tx) =>
        tx.run("UPDATE tasks SET queued_ms = ? WHERE task_id = ?", [queuedMs, taskId]),
      );
  };
  await availableFrom(Number.MAX_SAFE_INTEGER);
  const leaving = new AbortController();
  const streams = agents.map((agentId) =>
    bench.workers
      .watchAssignments({ agentId, capacity: 2 }, { signal: leaving.signal })
      [Symbol.asyncIterator](),
  );
  // The clock stands still, so no stream sends a heartbeat.
  const next = () =>
    Promise.all(streams.map(async (stream) => (await stream.next()).value?.assignment?.task?.id));
  const first = await next();
  expect(first.some((taskId) => later.has(taskId ?? ""))).toBe(false);
  await availableFrom(0);
  const second = next();
  await bench.pass(POLL_MS);
  expect(new Set(await second)).toEqual(later);
  leaving.abort();
});
