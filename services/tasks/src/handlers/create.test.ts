import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { as, type Bench, openBench } from "../testing/bench.ts";
import { ALICE, CONTRACT } from "../testing/fakes.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const input = fromJson(ValueSchema, "hello");
const right = { namespace: "depute:tasks", action: "delegate" };

test.each([
  ["a capability", { capabilityId: "shout", input }, { ...right, resource: "bob/shout" }],
  ["free work", { agentId: "worker" }, { ...right, resource: "worker/-" }],
  [
    "work under a contract",
    { agentId: "worker", contractId: CONTRACT },
    {
      ...right,
      resource: "worker/-",
      binding: { contractId: CONTRACT, requiredCapabilities: ["docs:read"] },
    },
  ],
])("the right that is asked for %s", async (_name, draft, asked) => {
  await bench.tasks.createTask({ requestId: "r", draft }, as(ALICE));
  expect(bench.rights).toEqual([asked]);
});

test("a call asks for it once, also when it comes again", async () => {
  const request = { requestId: "r", draft: { agentId: "worker" } };
  await bench.tasks.createTask(request, as(ALICE));
  await bench.tasks.createTask(request, as(ALICE));
  expect(bench.rights).toHaveLength(2);
});
