import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { IdConflictPolicy } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { integer, row } from "@depute/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Bench, begin, openBench } from "../../testing/bench.ts";
import { ALICE, BOB } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";
import { openTaskQuotas } from "../../testing/quotas.ts";
import { countOpenTasks } from "../store/open-task-rows.ts";

/** A bench in which a principal may have two open tasks, and an organization may have four. */
let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
  bench.fakes.quotas = openTaskQuotas(2);
  await bench.reopen();
});
afterEach(() => bench.close());

let calls = 0;
const by = (principal: string, organization = "") => ({
  headers: { as: principal, ...(organization !== "" && { "as-organization": organization }) },
});
const create = (options: object, draft: object = {}, requestId = `r-${++calls}`) =>
  bench.tasks.createTask({ requestId, draft: { agentId: "worker", ...draft } }, options);
const openOf = (delegator: string, organization = "") =>
  bench.runtime.context.engine.store.read((tx) => countOpenTasks(tx, { delegator, organization }));
const full = (owner: string, max: number) => ({
  reason: "LIMIT_EXCEEDED",
  metadata: { limit: `${owner}_open_tasks`, max: String(max), retry_after_ms: "1000" },
});

test("a principal at its maximum of open tasks cannot create another one", async () => {
  await create(by(ALICE));
  await create(by(ALICE));
  expect(await refusal(create(by(ALICE)))).toMatchObject(full("principal", 2));
  await create(by(BOB));
});

test("a replay returns the existing task, also at the maximum", async () => {
  const first = await create(by(ALICE), {}, "again");
  await create(by(ALICE));
  const again = await create(by(ALICE), {}, "again");
  expect(again.task?.id).toBe(first.task?.id);
  expect(await openOf(ALICE)).toMatchObject({ principal: 2 });
});

const output = { full: { kind: { case: "stringValue", value: "done" } } } as const;
test.each<[string, (taskId: string) => Promise<unknown>]>([
  ["cancelled", (taskId) => bench.tasks.cancelTask({ taskId }, by(ALICE))],
  [
    "completed",
    async () => bench.workers.completeAssignment({ lease: await begin(bench, "worker"), output }),
  ],
  [
    "failed",
    async () =>
      bench.workers.failAssignment({
        lease: await begin(bench, "worker"),
        failure: { reason: "BROKEN", retryable: false },
      }),
  ],
  ["expired", () => bench.pass(60_000)],
])("a task that is %s frees its place, once", async (_, end) => {
  const draft = { limits: { total: durationFromMs(60_000) } };
  const { task } = await create(by(ALICE, "acme"), draft);
  await create(by(ALICE, "acme"), { agentId: "bob" });
  await end(task?.id ?? "");
  expect(await openOf(ALICE, "acme")).toEqual({ principal: 1, organization: 1 });
  await create(by(ALICE, "acme"));
  expect(await refusal(create(by(ALICE, "acme")))).toMatchObject(full("principal", 2));
});

test("a task that replaces another one needs no further place", async () => {
  const named = { externalId: "mine" };
  await create(by(ALICE), named);
  await create(by(ALICE));
  const request = { requestId: "new", draft: { agentId: "worker", description: "other", ...named } };
  const conflictPolicy = IdConflictPolicy.TERMINATE_EXISTING;
  await bench.tasks.createTask({ ...request, conflictPolicy }, by(ALICE));
  expect(await openOf(ALICE)).toMatchObject({ principal: 2 });
});

test("the principals of an organization share its places, and another organization has its own", async () => {
  for (const member of ["m1", "m1", "m2", "m2"]) await create(by(member, "acme"));
  expect(await refusal(create(by("m3", "acme")))).toMatchObject(full("organization", 4));
  await create(by("m3", "globex"));
  await create(by("m3"));
});

test("children count for their delegator and the organization of their root", async () => {
  const { task } = await create(by(ALICE, "acme"));
  await create(by(ALICE), { agentId: "bob", parentTaskId: task?.id ?? "" });
  expect(await openOf(ALICE, "acme")).toEqual({ principal: 2, organization: 2 });
  await bench.tasks.cancelTask({ taskId: task?.id ?? "" }, by(ALICE));
  expect(await openOf(ALICE, "acme")).toEqual({ principal: 0, organization: 0 });
});

test("each task of a batch needs a place of its own", async () => {
  const requests = ["a", "b", "c"].map((requestId) => ({ requestId, draft: { agentId: "worker" } }));
  const { outcomes } = await bench.tasks.batchCreateTasks({ requests }, by(ALICE));
  expect(outcomes.map(({ outcome }) => outcome.case).sort()).toEqual(["error", "taskId", "taskId"]);
});

test("concurrent creations never exceed the places", async () => {
  const results = await Promise.allSettled(Array.from({ length: 50 }, () => create(by(ALICE))));
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(2);
  expect(await openOf(ALICE)).toMatchObject({ principal: 2 });
});

test("`local` has no quota", async () => {
  for (let i = 0; i < 5; i++) await create({});
});

test("a start recounts the open tasks of an older version", async () => {
  await create(by(ALICE, "acme"));
  await create(by(BOB, "acme"));
  await bench.runtime.context.engine.store.write(async (tx) => {
    await tx.run("DELETE FROM open_tasks WHERE owner = 'organization acme'");
    await tx.run("UPDATE open_tasks SET open = 7");
  });
  await bench.reopen();
  expect(await openOf(ALICE, "acme")).toEqual({ principal: 1, organization: 2 });
});

test("an owner without open tasks has no row", async () => {
  const { task } = await create(by(ALICE, "acme"));
  await bench.tasks.cancelTask({ taskId: task?.id ?? "" }, by(ALICE));
  const rows = await bench.runtime.context.engine.store.read((tx) =>
    tx.all(row({ n: integer }), "SELECT count(*) AS n FROM open_tasks"),
  );
  expect(rows).toEqual([{ n: 0 }]);
});
