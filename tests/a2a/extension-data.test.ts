import { TaskState } from "@a2a-js/sdk";
import { A2A_EXTENSIONS } from "@depute/core";
import { beforeAll, describe, expect, test } from "vitest";
import { delegateosCast } from "../gateway/delegateos-scene.ts";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { all, BINDINGS, clientOver, request, userMessage } from "./scene.ts";

const { ACTOR_CHAIN, BUDGETS, DELEGATED_AUTHORITY, SUSPENSION, VERIFIED_RESULTS } = A2A_EXTENSIONS;
const ALL = [ACTOR_CHAIN, BUDGETS, DELEGATED_AUTHORITY, SUSPENSION, VERIFIED_RESULTS].map(({ uri }) => uri);

let platform: TestPlatform;
let cast: Awaited<ReturnType<typeof delegateosCast>>;
beforeAll(async () => {
  platform = await startPlatform();
  cast = await delegateosCast(() => platform, Date.now);
  platform.work("worker", async (input, { checkpoint, saved }) => {
    if (input === "suspend" && saved === undefined) {
      for (;;) {
        await checkpoint({ page: 7 });
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
    return { output: { count: 3, from: saved ?? null }, tokensUsed: 40, costMicrocents: 7n };
  });
  return () => platform.stop();
}, 60_000);

const active = (uris: readonly string[] = ALL) => ({
  serviceParameters: { "A2A-Extensions": uris.join(", ") },
});
const about = (data: Readonly<Record<string, unknown>>, more = {}) => ({ metadata: data as never, ...more });

describe.each(BINDINGS)("the data of extensions over %s", (binding) => {
  const connect = () => clientOver(platform.url, "worker", binding);

  async function send(text: string, data: Readonly<Record<string, unknown>>, uris = ALL, more = {}) {
    const client = await connect();
    const answer = await client.sendMessage(request(userMessage(text, about(data, more))), active(uris));
    if (!("status" in answer)) throw new Error("the answer is no task");
    return answer;
  }

  test("budgets: a message limits its task, and the task states what it used", async () => {
    const task = await send("count", { [BUDGETS.uri]: { maxTokens: 100, maxCostMicrocents: 50 } });
    const stated = { maxTokens: 100, maxCostMicrocents: 50, tokensUsed: 40, costMicrocents: 7 };
    expect(task.metadata?.[BUDGETS.uri]).toEqual(stated);
    const client = await connect();
    const read = await client.getTask({ tenant: "", id: task.id }, active([BUDGETS.uri]));
    expect(read.metadata).toEqual({ [BUDGETS.uri]: stated });
    const { spend } = (await platform.clients.tasks.getTask({ taskId: task.id })).task ?? {};
    expect(spend).toMatchObject({ maxTokens: 100n, maxCostMicrocents: 50n });
  });

  test("verified results: the contract checks the result, and the task states the verdict", async () => {
    const { contract } = await cast.withoutTask();
    const task = await send("count", { [VERIFIED_RESULTS.uri]: { contractId: contract.id } });
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(task.metadata?.[VERIFIED_RESULTS.uri]).toMatchObject({
      contractId: contract.id,
      verification: { method: "schema_match", passed: true },
    });
  });

  test("delegated authority and actor chain: the agent gets the token, and the task names the actors", async () => {
    const { contract, dct, delegationId } = await cast.withoutTask();
    const data = { [DELEGATED_AUTHORITY.uri]: { token: dct, contractId: contract.id } };
    const task = await send("count", data);
    expect(task.metadata?.[DELEGATED_AUTHORITY.uri]).toEqual({ delegationId });
    const { delegations } = await platform.clients.delegations.getDelegationChain({ delegationId });
    expect(task.metadata?.[ACTOR_CHAIN.uri]).toEqual({
      onBehalfOf: delegations[0]?.delegator,
      delegator: "local",
      actors: [cast.worker.principal.id],
    });
  });

  test("actor chain: without a token, the agent acts for the task's delegator", async () => {
    const task = await send("count", {}, [ACTOR_CHAIN.uri]);
    expect(task.metadata).toEqual({
      [ACTOR_CHAIN.uri]: { onBehalfOf: "local", delegator: "local", actors: [] },
    });
  });

  test("suspension: a message suspends a task at its checkpoint, and another one resumes it from there", async () => {
    const client = await connect();
    const sent = await client.sendMessage({
      ...request(userMessage("suspend")),
      configuration: { returnImmediately: true } as never,
    });
    if (!("status" in sent)) throw new Error("the answer is no task");
    await expect
      .poll(async () => (await platform.clients.tasks.getTask({ taskId: sent.id })).task?.checkpointAvailable)
      .toBe(true);
    const named = { taskId: sent.id };
    const suspended = await send("later", { [SUSPENSION.uri]: { action: "suspend" } }, ALL, named);
    expect(suspended.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    expect(suspended.metadata?.[SUSPENSION.uri]).toEqual({ isSuspended: true, isCheckpointAvailable: true });
    const resumed = await send("go on", { [SUSPENSION.uri]: { action: "resume" } }, ALL, named);
    expect(resumed.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(resumed.artifacts[0]?.parts[0]?.content?.value).toEqual({ count: 3, from: { page: 7 } });
  });

  test("a stream has the data in its first task, and in the status that ends it", async () => {
    const client = await connect();
    const events = await all(client.sendMessageStream(request(userMessage("count")), active([BUDGETS.uri])));
    const data = events.map(({ payload }) => payload?.value.metadata?.[BUDGETS.uri]);
    expect(data.at(-1)).toEqual({ tokensUsed: 40, costMicrocents: 7 });
    expect(data[0]).toBeDefined();
  });

  const bad = (uri: string, value: unknown, path: string) => ({ uri, value, path });
  test.each([
    bad(BUDGETS.uri, 5, ""),
    bad(BUDGETS.uri, { maxTokens: -1 }, ".maxTokens"),
    bad(BUDGETS.uri, { maxTokens: 1.5 }, ".maxTokens"),
    bad(BUDGETS.uri, { maxTokens: "5" }, ".maxTokens"),
    bad(BUDGETS.uri, { maxToken: 5 }, ".maxToken"),
    bad(VERIFIED_RESULTS.uri, { contractId: 5 }, ".contractId"),
    bad(VERIFIED_RESULTS.uri, { contractId: "ct_no" }, ".contractId"),
    bad(DELEGATED_AUTHORITY.uri, { token: ["x"] }, ".token"),
    bad(DELEGATED_AUTHORITY.uri, { dct: "x" }, ".dct"),
    bad(SUSPENSION.uri, { action: "stop" }, ".action"),
    bad(SUSPENSION.uri, {}, ".action"),
  ])("malformed data of an active extension is refused: $value", async ({ uri, value, path }) => {
    const before = (await platform.clients.tasks.listTasks({ pageSize: 1000 })).tasks.length;
    await expect(send("count", { [uri]: value })).rejects.toThrow(`message.metadata["${uri}"]${path}`);
    expect((await platform.clients.tasks.listTasks({ pageSize: 1000 })).tasks).toHaveLength(before);
  });

  test("a token for another agent is refused", async () => {
    const contract = await cast.withoutTask();
    const data = { token: (await cast.delegation(cast.below)).dct, contractId: contract.contract.id };
    await expect(send("count", { [DELEGATED_AUTHORITY.uri]: data })).rejects.toThrow();
  });

  test("a client that activates no extension sees no difference, whatever the metadata contains", async () => {
    const client = await connect();
    const data = { [BUDGETS.uri]: { maxTokens: -1 }, [SUSPENSION.uri]: { action: "suspend" } };
    const task = await client.sendMessage(request(userMessage("count", about(data))));
    expect(task).toMatchObject({ status: { state: TaskState.TASK_STATE_COMPLETED } });
    expect(task.metadata).toBeUndefined();
  });
});
