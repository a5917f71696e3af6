import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, openBench } from "../../testing/bench.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

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
