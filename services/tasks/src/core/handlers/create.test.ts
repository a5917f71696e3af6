import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { DenialType } from "@depute/contracts/delegateos/v0/delegation_pb";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asCaller, type Bench, openBench } from "../../testing/bench.ts";
import { ALICE, BOB, CONTRACT } from "../../testing/fakes.ts";
import { HELD_TOKEN, HOLDER, presenting } from "../../testing/held-token.ts";
import { refusal } from "../../testing/platform.ts";

let bench: Bench;
beforeEach(async () => {
  bench = await openBench();
});
afterEach(() => bench.close());

const input = fromJson(ValueSchema, "hello");
const right = { namespace: "depute:tasks", action: "delegate" };

test.each([
  ["a task of a capability", { capabilityId: "shout", input }, { ...right, resource: "bob/shout" }],
  ["a task without a capability", { agentId: "worker" }, { ...right, resource: "worker/-" }],
  [
    "a task under a contract",
    { agentId: "worker", contractId: CONTRACT },
    {
      ...right,
      resource: "worker/-",
      binding: { contractId: CONTRACT, requiredCapabilities: ["docs:read"] },
    },
  ],
])("the token is checked for the capability to create %s", async (_name, draft, askedSpend) => {
  await bench.tasks.createTask({ requestId: "r", draft }, presenting());
  expect(bench.rights).toEqual([askedSpend]);
});

test("each call checks the token once, also a repeated call", async () => {
  const request = { requestId: "r", draft: { agentId: "worker" } };
  await bench.tasks.createTask(request, presenting());
  await bench.tasks.createTask(request, presenting());
  expect(bench.rights).toHaveLength(2);
});

test("a caller without a token is identified, and no capability is checked", async () => {
  await bench.tasks.createTask({ requestId: "r", draft: { agentId: "worker" } }, asCaller(ALICE));
  expect(bench.rights).toEqual([]);
});

const hidden: [string, object, string][] = [
  ["the id", { agentId: "bob" }, "AGENT_NOT_FOUND"],
  ["a capability", { capabilityId: "shout", input }, "CAPABILITY_NOT_FOUND"],
];

test.each(hidden)(
  "%s of a hidden agent is not found by callers from which it is hidden",
  async (_name, draft, reason) => {
    const create = (options: object) => bench.tasks.createTask({ requestId: "r", draft }, options);
    bench.fakes.agents.set("bob", { principal: BOB, active: true, visibleTo: [ALICE] });
    bench.fakes.tokens.set(HELD_TOKEN, { delegatee: HOLDER, block: "b" });
    expect(await refusal(create(asCaller(HOLDER)))).toMatchObject({ reason });
    expect(await refusal(create(presenting()))).toMatchObject({ reason });
    expect(bench.rights).toEqual([]);
    await create(asCaller(ALICE));
    await create(asCaller(BOB));
    await create({});
    bench.fakes.agents.set("bob", { principal: BOB, active: true, visibleTo: [HOLDER] });
    await create(presenting());
  },
);

test.each([
  ["visible", [HOLDER]],
  ["hidden", []],
])(
  "a caller with another principal's token learns nothing of an agent that is %s to the holder",
  async (_, to) => {
    bench.fakes.agents.set("bob", { principal: BOB, active: true, visibleTo: to });
    bench.fakes.tokens.set(HELD_TOKEN, { delegatee: HOLDER, block: "b" });
    const call = bench.tasks.createTask({ requestId: "r", draft: { agentId: "bob" } }, presenting(ALICE));
    expect(await refusal(call)).toMatchObject({
      reason: "TOKEN_DENIED",
      metadata: { denial: "invalid_proof", detail: "jwk" },
    });
  },
);

test("a forged token is denied before the answer says anything about the agent", async () => {
  bench.fakes.tokens.set(HELD_TOKEN, { delegatee: HOLDER, block: "b", denial: DenialType.INVALID_SIGNATURE });
  const call = bench.tasks.createTask({ requestId: "r", draft: { agentId: "nobody" } }, presenting());
  expect(await refusal(call)).toMatchObject({ reason: "TOKEN_DENIED" });
});

test("a malformed token is denied", async () => {
  const options = { headers: { as: ALICE, authorization: "DPoP abc" } };
  const call = bench.tasks.createTask({ requestId: "r", draft: { agentId: "worker" } }, options);
  expect(await refusal(call)).toMatchObject({
    reason: "TOKEN_DENIED",
    metadata: { denial: "malformed_token" },
  });
});

test("a hidden agent cannot be a reader, and its tasks are not found", async () => {
  bench.fakes.agents.set("bob", { principal: BOB, active: true, visibleTo: [] });
  const envelope = {
    data: new TextEncoder().encode("{}"),
    ttlS: 60,
    permissions: { forward: false, persist: true, derive: false },
  };
  const share = { requestId: "r", envelope, readerAgentIds: ["bob"] };
  expect(await refusal(bench.contexts.shareContext(share, asCaller(ALICE)))).toMatchObject({
    reason: "AGENT_NOT_FOUND",
  });
  const limits = { agentId: "bob" };
  expect(await refusal(bench.workers.getDelegateLimits(limits, asCaller(ALICE)))).toMatchObject({
    reason: "AGENT_NOT_FOUND",
  });
  await bench.workers.getDelegateLimits(limits, asCaller(BOB));
});
