import { create, fromJson } from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { anyUnpack, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  BatchCreateTasksRequestSchema,
  type CreationOutcome,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { ErrorInfoSchema } from "@depute/contracts/google/rpc/error_details_pb";
import { brokenRules } from "@depute/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { asCaller, type Bench, openBench, take } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT } from "../../testing/fakes.ts";
import { HELD_TOKEN, HOLDER, presenting } from "../../testing/held-token.ts";
import { refusal } from "../../testing/platform.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const input = fromJson(ValueSchema, "hello");
const SHOUT = { capabilityId: "shout", input };
const FREE = { agentId: "worker", description: "count" };

const batch = (requests: { requestId: string; draft: object }[], options: object = asCaller(ALICE)) =>
  bench.tasks.batchCreateTasks({ requests }, options).then(({ outcomes }) => outcomes.map(errorOf));

/** Returns a short form of an outcome: the refusal's reason, or a word for a created task. */
function errorOf({ outcome }: CreationOutcome) {
  if (outcome.case !== "error") return outcome.value === "" ? "nothing" : "a task";
  return outcome.value.details.map((detail) => anyUnpack(detail, ErrorInfoSchema)).find(Boolean)?.reason;
}

const listed = async (options: object = asCaller(ALICE)) => (await bench.tasks.listTasks({}, options)).tasks;

test("the service checks each request separately, and the outcomes are in the order of the requests", async () => {
  const outcomes = await batch([
    { requestId: "a", draft: SHOUT },
    { requestId: "b", draft: { ...SHOUT, input: fromJson(ValueSchema, 7) } },
    { requestId: "c", draft: { agentId: "nobody" } },
    { requestId: "d", draft: { ...FREE, capabilityHash: "0a1b2c3d" } },
    { requestId: "e", draft: FREE },
    { requestId: "e", draft: SHOUT },
  ]);
  expect(outcomes).toEqual([
    "a task",
    "INPUT_SCHEMA_VIOLATION",
    "AGENT_NOT_FOUND",
    "INVALID_REQUEST",
    "a task",
    "REQUEST_ID_REUSED",
  ]);
  expect((await listed()).map(({ agentId }) => agentId).sort()).toEqual(["bob", "worker"]);
});

test("a task of a batch equals a task of a single call", async () => {
  const single = await bench.tasks.createTask({ requestId: "single", draft: SHOUT }, asCaller(ALICE));
  await batch([{ requestId: "batched", draft: SHOUT }]);
  const [batched] = (await listed()).filter(({ id }) => id !== single.task?.id);
  const same = (task = batched) => ({ ...task, id: "", rootTaskId: "", correlationId: "", input: undefined });
  expect(same(batched)).toEqual(same(single.task));
});

test("a repeated batch returns the existing tasks, even if new ones would be refused", async () => {
  const requests = [
    { requestId: "a", draft: SHOUT },
    { requestId: "b", draft: FREE },
  ];
  const ids = async () =>
    (await bench.tasks.batchCreateTasks({ requests }, asCaller(ALICE))).outcomes.map(
      ({ outcome }) => outcome.value,
    );
  const first = await ids();
  bench.fakes.agents.set("worker", { principal: "", active: false });
  expect(await ids()).toEqual(first);
  expect(await listed()).toHaveLength(2);
});

test("an agent that several requests name is read once", async () => {
  let questions = 0;
  const agents = bench.runtime.context.dependencies.agents;
  const getAgent = agents.getAgent;
  Object.assign(agents, {
    getAgent: (...call: Parameters<typeof getAgent>) => {
      questions++;
      return getAgent(...call);
    },
  });
  const requests = ["a", "b", "c"].map((requestId) => ({ requestId, draft: FREE }));
  expect(await batch(requests)).toEqual(["a task", "a task", "a task"]);
  expect(questions).toBe(1);
});

describe("a caller with a token", () => {
  beforeEach(() => bench.fakes.tokens.set(HELD_TOKEN, { delegatee: HOLDER, block: "b" }));

  test("has its token checked once for the capability that all requests need", async () => {
    const requests = ["a", "b"].map((requestId) => ({ requestId, draft: { ...FREE, contractId: CONTRACT } }));
    expect(await batch(requests, presenting())).toEqual(["a task", "a task"]);
    expect(bench.rights).toEqual([
      {
        namespace: "depute:tasks",
        action: "delegate",
        resource: "worker/-",
        binding: { contractId: CONTRACT, requiredCapabilities: ["docs:read"] },
      },
    ]);
  });

  const mixed = [
    { requestId: "a", draft: FREE },
    { requestId: "b", draft: SHOUT },
  ];

  test("cannot create tasks that need different capabilities", async () => {
    expect(await refusal(batch(mixed, presenting()))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["requests"],
    });
    expect(await listed(asCaller(HOLDER))).toEqual([]);
  });

  test.each([
    ["about requests for different capabilities", mixed],
    ["about a request for one capability", [{ requestId: "a", draft: FREE }]],
    ["about an unknown agent", [{ requestId: "a", draft: { agentId: "nobody" } }]],
  ])("that does not hold the token learns nothing %s", async (_name, requests) => {
    expect(await refusal(batch(requests, presenting(BOB)))).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "invalid_proof", detail: "jwk" },
    });
  });
});

test("a request with a wait is refused in a batch of several", async () => {
  const requests = [
    { requestId: "a", draft: FREE },
    { requestId: "b", draft: FREE, wait: { seconds: 1n } },
  ];
  expect(await refusal(batch(requests))).toMatchObject({
    reason: "INVALID_REQUEST",
    fields: ["requests[1].wait"],
  });
  expect(await listed()).toEqual([]);
});

test.each([
  ["nothing", 0, "requests"],
  ["more than a hundred requests", 101, "requests"],
  ["a request without a draft", 2, "requests[1].draft"],
])("the contract refuses %s as a whole", (_name, length, field) => {
  const requests = Array.from({ length }, (_, i) => ({
    requestId: `${i}`,
    ...(i === 1 ? {} : { draft: FREE }),
  }));
  const request = create(BatchCreateTasksRequestSchema, { requests });
  const broken = brokenRules(BatchCreateTasksRequestSchema, request);
  expect(broken.map((rule) => pathToString(rule.field))).toContain(field);
});

test("workers get the tasks of a batch in the order of the requests, with their inputs", async () => {
  const inputs = ["first", "second", "third"].map((word) => fromJson(ValueSchema, word));
  await batch(inputs.map((each, i) => ({ requestId: `${i}`, draft: { ...SHOUT, input: each } })));
  const assignments = [await take(bench, "bob"), await take(bench, "bob"), await take(bench, "bob")];
  expect(assignments.map(({ task }) => task?.input)).toEqual(inputs);
  expect(assignments.map(({ task }) => task?.status)).toEqual(inputs.map(() => TaskStatus.ACCEPTED));
});
