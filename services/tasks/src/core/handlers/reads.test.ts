import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { Assignment } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { ReadTx, Store } from "@depute/store";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { asCaller, type Bench, begin, openBench, take } from "../../testing/bench.ts";
import { ALICE } from "../../testing/fakes.ts";

const ME = asCaller(ALICE);
const VALUE = fromJson(ValueSchema, { n: 1 });
/** The entry that `record` adds for a read of a task's own row. */
const ROW = "tasks by task_id";

let bench: Bench;
let reads: string[];
beforeEach(async () => {
  bench = await openBench();
  reads = [];
  record(bench.runtime.context.engine.store);
});
afterEach(() => bench.close());

/**
 * Records the table and the search column of each statement that reads from the store. Omits writes, even if they
 * return rows.
 */
function record(store: Store): void {
  const noting = <Tx extends ReadTx>(tx: Tx): Tx =>
    new Proxy(tx, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        const call = member.bind(target) as (...parts: unknown[]) => unknown;
        if (name !== "get" && name !== "all") return call;
        return (...parts: unknown[]) => {
          const sql = parts.find((part) => typeof part === "string") ?? "";
          const isWrite = /^\s*(?:INSERT|UPDATE|DELETE)\b/.test(sql);
          if (!isWrite) reads.push(/FROM (\w+)\s+WHERE (\w+)/.exec(sql)?.slice(1).join(" by ") ?? sql);
          return call(...parts);
        };
      },
    });
  const { read, write } = { read: store.read.bind(store), write: store.write.bind(store) };
  vi.spyOn(store, "read").mockImplementation((fn) => read((tx) => fn(noting(tx))));
  vi.spyOn(store, "write").mockImplementation((fn, options) => write((tx) => fn(noting(tx)), options));
}

/** Runs a call. Returns its result, and its reads in order. */
async function readsOf<T>(call: () => Promise<T>): Promise<{ result: T; reads: string[] }> {
  reads.length = 0;
  const result = await call();
  return { result, reads: [...reads] };
}

const create = (draft: object = {}) =>
  bench.tasks.createTask({ requestId: "r", draft: { agentId: "worker", input: VALUE, ...draft } }, ME);

test("a creation reads only whether the request was answered before", async () => {
  const created = await readsOf(() => create());
  expect(created.reads).toEqual(["task_requests by delegator"]);
  expect(created.result.task?.input).toEqual(VALUE);
});

test("a repeated creation reads its request once, and the task", async () => {
  await create();
  expect((await readsOf(() => create())).reads).toEqual([
    "task_requests by delegator",
    ROW,
    "task_inputs by task_id",
  ]);
});

test("a delegation streams its first events without a read of the log", async () => {
  const events = bench.tasks
    .delegateTask({ requestId: "r", draft: { agentId: "worker", input: VALUE } }, ME)
    [Symbol.asyncIterator]();
  const first = await readsOf(() => events.next());
  expect(first.result.value?.taskEvent?.payload.case).toBe("created");
  expect(first.reads).toEqual(["task_requests by delegator"]);
  await events.return?.();
});

test("a task that is dispatched at once carries its new context and input without a read", async () => {
  const leaving = new AbortController();
  const calls = { signal: leaving.signal };
  const stream = bench.workers
    .watchAssignments({ agentId: "worker", worker: "w", capacity: 2 }, calls)
    [Symbol.asyncIterator]();
  const nextBeat = stream.next();
  await vi.waitFor(() => expect(reads).toContain("delegate_limits by agent_id"));
  await new Promise(setImmediate);
  const contexts = [
    {
      data: new TextEncoder().encode('{"n":1}'),
      compression: "none",
      permissions: { forward: false, persist: true, derive: false },
      ttlS: 60,
    },
  ];
  const created = await readsOf(() => create({ input: undefined, contexts, inputFromContext: true }));
  const assignment: Assignment | undefined = (await nextBeat).value?.assignment;
  expect(created.reads).toEqual(["task_requests by delegator"]);
  expect(assignment?.task?.input).toEqual(VALUE);
  expect(assignment?.contexts.map(({ readerAgentIds }) => readerAgentIds)).toEqual([["worker"]]);
  leaving.abort();
  await stream.next().catch(() => {});
});

test("a claim reads the input once, and neither the row nor absent contexts", async () => {
  await create();
  const claimed = await readsOf(() => take(bench, "worker"));
  expect(claimed.result.task?.input).toEqual(VALUE);
  expect(claimed.reads.filter((read) => read.startsWith("task_"))).toEqual(["task_inputs by task_id"]);
  expect(claimed.reads).not.toContain(ROW);
});

test("a completion reads only the input for its answer, and the child tasks", async () => {
  await create();
  const lease = await begin(bench, "worker");
  const output = { full: VALUE };
  const completed = await readsOf(() => bench.workers.completeAssignment({ lease, output }));
  expect(completed.result.task?.input).toEqual(VALUE);
  expect(completed.reads).toEqual(["task_inputs by task_id", "tasks by parent_id"]);
});

test("a cancellation reads the input for its answer, and the child tasks", async () => {
  const taskId = (await create()).task?.id ?? "";
  const cancelled = await readsOf(() => bench.tasks.cancelTask({ taskId }, ME));
  expect(cancelled.result.task?.input).toEqual(VALUE);
  expect(cancelled.reads).toEqual(["tasks by parent_id", "task_inputs by task_id"]);
});

test("a suspension and the resumption after it read only the input for their answers", async () => {
  const taskId = (await create()).task?.id ?? "";
  const lease = await begin(bench, "worker");
  const suspended = await readsOf(() => bench.workers.suspendAssignment({ lease }));
  expect(suspended.reads).toEqual(["task_inputs by task_id"]);
  const resumed = await readsOf(() => bench.tasks.resumeTask({ taskId }, ME));
  expect(resumed.result.task?.input).toEqual(VALUE);
  expect(resumed.reads).toEqual(["task_inputs by task_id"]);
});
