import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { holderHeaders } from "@depute/client";
import { DelegationStatus } from "@depute/contracts/delegateos/v0/delegation_pb";
import { AgentVisibility } from "@depute/contracts/depute/registry/v1/agent_pb";
import { reasonName } from "@depute/core";
import { generateKeypair, type Keypair, newId, signObject } from "@depute/dct";
import { nativeEngine as engine } from "@depute/dct/native";
import { fromConnectError } from "@depute/service";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { call, introduce, result, startPlatform, type TestPlatform } from "./platform.ts";

let platform: TestPlatform;
const [friend, stranger, worker, boss] = Array.from({ length: 4 }, () => generateKeypair(engine)) as [
  Keypair,
  Keypair,
  Keypair,
  Keypair,
];

beforeAll(async () => {
  platform = await startPlatform();
  const { agents } = platform.clients;
  await introduce(platform, "worker", [], worker.principal.id);
  await agents.registerAgent({
    requestId: "hidden",
    agent: { id: "hidden", visibility: AgentVisibility.NAMED, visibleTo: [friend.principal.id] },
  });
  const manifest = {
    ...{ id: "boss", allowedAgents: ["worker"] },
    delegateRules: { worker: { whenToDelegate: "always" } },
  };
  await agents.registerAgent({
    requestId: "boss",
    agent: { id: "boss", principal: boss.principal.id, manifest },
  });
});
afterAll(() => platform.stop());

async function mint(to: Keypair, right: { namespace: string; action: string }, contractId = newId("ct")) {
  const { token, delegationId, revocationId } = await platform.clients.tokens.mintToken({
    ...{ requestId: crypto.randomUUID(), delegatee: to.principal.id, contractId },
    capabilities: [{ ...right, resource: "**" }],
    ...{ maxChainDepth: 2, maxBudgetMicrocents: 1000n, lifetime: durationFromMs(600_000) },
  });
  return { token: token?.token ?? "", delegationId, revocationId };
}

/**
 * Creates a task for an agent as the holder of a key, with or without a token. Returns the reason of the refusal; empty
 * if the task was created.
 */
async function handOver(keypair: Keypair, agentId: string, token?: string): Promise<string> {
  const holder = { engine, keypair, publicUrl: platform.url, ...(token !== undefined && { token }) };
  const headers = holderHeaders(holder, "/depute.tasks.v1.TaskService/CreateTask");
  const draft = { agentId, description: "because" };
  return platform.clients.tasks.createTask({ requestId: crypto.randomUUID(), draft }, { headers }).then(
    () => "",
    (thrown: unknown) => reasonName(fromConnectError(thrown).reason),
  );
}

const DELEGATE = { namespace: "depute:tasks", action: "delegate" };

describe("an agent that is invisible to the delegator", () => {
  test("is not found, with a token and without", async () => {
    expect(await handOver(stranger, "hidden")).toBe("AGENT_NOT_FOUND");
    expect(await handOver(stranger, "hidden", (await mint(stranger, DELEGATE)).token)).toBe(
      "AGENT_NOT_FOUND",
    );
    expect(await handOver(friend, "hidden")).toBe("");
    expect(await handOver(friend, "hidden", (await mint(friend, DELEGATE)).token)).toBe("");
  });

  test("is not revealed by the token of a viewer that another caller presents", async () => {
    const { token } = await mint(friend, DELEGATE);
    for (const agentId of ["hidden", "nobody"]) {
      expect(await handOver(stranger, agentId, token)).toBe("TOKEN_DENIED");
    }
  });
});

test("an agent with a manifest delegates to its allowed agents", async () => {
  await introduce(platform, "other");
  expect(await handOver(boss, "worker")).toBe("");
  expect(await handOver(boss, "other")).toBe("CALLER_NOT_ALLOWED");
  expect(await handOver(boss, "other", (await mint(boss, DELEGATE)).token)).toBe("CALLER_NOT_ALLOWED");
});

test("the delegation of a task ends with the task", async () => {
  const delegator = generateKeypair(engine);
  const contract = signObject(
    engine,
    "contract",
    {
      ...{ id: newId("ct"), version: "0.1", issuer: delegator.principal.id },
      createdAt: new Date(Date.now() - 1000).toISOString(),
      task: { title: "Count", description: "Count.", inputs: {}, outputSchema: {} },
      verification: { method: "schema_match" },
      constraints: {
        ...{ maxBudgetMicrocents: 1000, maxChainDepth: 2, requiredCapabilities: ["llm:classify"] },
        deadline: new Date(Date.now() + 600_000).toISOString(),
      },
    },
    delegator,
  );
  const granted = await mint(worker, { namespace: "llm", action: "classify" }, contract.id as string);
  const { delegationId, revocationId } = granted;
  const params = { contract, dct: granted.token, dctFormat: "delegateos-sjt-v1", delegationId };
  const parentDelegationId = "del_000000000000";
  await result(platform.post("/delegateos", call("delegateos/delegate", { ...params, parentDelegationId })));
  const { tasks, delegations } = platform.clients;
  const status = async () =>
    (await delegations.getDelegation({ delegationId, revocationId })).delegation?.status;
  expect(await status()).toBe(DelegationStatus.ACTIVE);
  const { task } = await tasks.getTask({ externalId: delegationId });
  await tasks.cancelTask({ taskId: task?.id ?? "" });
  await vi.waitFor(async () => expect(await status()).toBe(DelegationStatus.FAILED), 5000);
});
