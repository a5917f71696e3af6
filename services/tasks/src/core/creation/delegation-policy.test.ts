import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB, type FakeAgent } from "../../testing/fakes.ts";
import { refusal } from "../../testing/platform.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

let count = 0;
const create = (principal: string | undefined, draft: object = {}) =>
  bench.tasks.createTask(
    { requestId: `r${++count}`, draft: { agentId: "worker", description: "it is about money", ...draft } },
    principal === undefined ? {} : asCaller(principal),
  );
const alices = (agents: Record<string, Omit<FakeAgent, "principal" | "active">>) => {
  for (const [id, more] of Object.entries(agents)) {
    bench.fakes.agents.set(id, { principal: ALICE, active: true, ...more });
  }
};

test.each<[string, Parameters<typeof alices>[0]]>([
  ["has no agent", {}],
  ["has an agent without a manifest", { plain: {} }],
  ["has an agent whose manifest allows it", { boss: { mayDelegateTo: ["worker"] } }],
  [
    "has several agents, one of which may delegate",
    { aide: { mayDelegateTo: ["bob"] }, boss: { mayDelegateTo: ["worker"] } },
  ],
])("a delegator may create a task if it %s", async (_name, agents) => {
  alices(agents);
  await create(ALICE);
});

test.each<[string, Parameters<typeof alices>[0], object, string, string]>([
  [
    "for an agent that its manifest does not name",
    { boss: { mayDelegateTo: ["bob"] } },
    {},
    "boss",
    "not_allowed",
  ],
  ["if its manifest names no agent", { boss: { mayDelegateTo: [] } }, {}, "boss", "not_allowed"],
  [
    "for an agent that none of its manifests names",
    { plain: {}, boss: { mayDelegateTo: ["bob"] } },
    {},
    "boss",
    "not_allowed",
  ],
  [
    "without a justification",
    { boss: { mayDelegateTo: ["worker"] } },
    { description: " " },
    "boss",
    "no_justification",
  ],
])("a delegator may not create a task %s", async (_name, agents, draft, agent, decision) => {
  alices(agents);
  expect(await refusal(create(ALICE, draft))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
    metadata: { agent, delegate: "worker", decision },
  });
  const { tasks } = await bench.tasks.listTasks({}, asCaller(ALICE));
  expect(tasks).toEqual([]);
});

test("a manifest binds neither other principals nor the platform's own callers", async () => {
  alices({ boss: { mayDelegateTo: [] } });
  await create(BOB);
  await create(undefined);
});

test("the description is the justification, cut at the registry's limit between characters", async () => {
  alices({ boss: { mayDelegateTo: ["worker"] } });
  await create(ALICE, { description: `${"a".repeat(3999)}😀😀` });
  expect(bench.fakes.justifications).toEqual([`${"a".repeat(3999)}😀`]);
});

test("a replay gets its answer even if a new manifest forbids the task", async () => {
  const request = { requestId: "same", draft: { agentId: "worker" } };
  const first = await bench.tasks.createTask(request, asCaller(ALICE));
  alices({ boss: { mayDelegateTo: [] } });
  const second = await bench.tasks.createTask(request, asCaller(ALICE));
  expect(second.task?.id).toBe(first.task?.id);
});

test("a predicate that is false or undecided is reported with its cause", async () => {
  alices({ boss: { mayDelegateTo: ["worker"] } });
  bench.fakes.predicateFailure = "field not found: depth";
  expect(await refusal(create(ALICE))).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
    metadata: { decision: "predicate_failed", predicate_failure: "field not found: depth" },
  });
  bench.fakes.predicateFailure = "";
  expect((await refusal(create(ALICE))).metadata).toEqual({
    agent: "boss",
    delegate: "worker",
    decision: "predicate_not_met",
  });
});

test("the registry gets the facts of the task that predicates can use", async () => {
  alices({ boss: { mayDelegateTo: ["worker", "bob"] } });
  const spend = { maxCostMicrocents: 700n, maxTokens: 80n };
  const { task } = await create(ALICE, {
    agentId: "",
    capabilityId: "shout",
    input: fromJson(ValueSchema, "a"),
    priority: 7,
    spend,
  });
  await create(ALICE, { parentTaskId: task?.id ?? "" });
  expect(bench.fakes.works).toMatchObject([
    { capabilityId: "shout", priority: 7, depth: 0, maxCostMicrocents: 700n, maxTokens: 80n },
    { capabilityId: "", priority: 0, depth: 1, attachmentTypes: [] },
  ]);
  expect(bench.fakes.works[1]?.maxTokens).toBeUndefined();
});
