import { fromJson, type JsonValue, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { TaskDraftSchema } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { toTimestamp } from "@depute/core";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ALICE, BOB, CONTRACT } from "../../testing/fakes.ts";
import { as, collect, type Platform, refusal, startPlatform } from "../../testing/platform.ts";

type Draft = MessageInitShape<typeof TaskDraftSchema>;

let platform: Platform;
beforeEach(async () => {
  platform = await startPlatform();
  // By default, the deadline of the fakes' contract is in the past.
  platform.fakes.contractDeadlineMs = Date.now() + 600_000;
  platform.fakes.tokens.set("sound", { delegatee: BOB, block: "block-1" });
});
afterEach(() => platform.stop());

const text = (value: JsonValue) => fromJson(ValueSchema, value);
const FREE: Draft = { agentId: "worker", description: "say hello" };
const SHOUT: Draft = { capabilityId: "shout", input: text("hello") };

let count = 0;
const create = (draft: Draft, caller = ALICE) =>
  platform.tasks.createTask({ requestId: `request ${++count}`, draft }, as(caller));
const idOf = async (draft: Draft, caller = ALICE) => (await create(draft, caller)).task?.id ?? "";

describe("the creation of a task", () => {
  test("without a capability makes a pending task with all defaults", async () => {
    const { task } = await create(FREE);
    expect(task).toMatchObject({
      delegator: ALICE,
      agentId: "worker",
      capabilityId: "",
      correlationId: task?.id,
      status: TaskStatus.PENDING,
      attempt: 0,
      lastSequence: 1n,
      budget: { maxTokens: 500, detailLevel: "compact" },
      retry: { maxAttempts: 3 },
    });
    expect(task?.limits?.total).toMatchObject({ seconds: 3600n });
    expect(task?.limits?.heartbeat).toMatchObject({ seconds: 30n });
  });

  test("with a capability finds its agent, and keeps the input", async () => {
    const { task } = await create(SHOUT);
    expect(task).toMatchObject({ agentId: "bob", capabilityId: "shout", capabilityHash: "0a1b2c3d" });
    expect(task?.input).toEqual(text("hello"));
  });

  test.each([
    ["an unknown agent", { agentId: "nobody" }, "AGENT_NOT_FOUND"],
    ["a removed agent", { agentId: "gone" }, "AGENT_NOT_FOUND"],
    ["no target", { description: "do it" }, "INVALID_REQUEST"],
    ["an unknown capability", { capabilityId: "whisper" }, "CAPABILITY_NOT_FOUND"],
    ["an outdated hash", { ...SHOUT, capabilityHash: "ffffffff" }, "VERSION_MISMATCH"],
    ["an input outside the schema", { ...SHOUT, input: text(7) }, "INPUT_SCHEMA_VIOLATION"],
    ["a missing input", { capabilityId: "shout" }, "INPUT_SCHEMA_VIOLATION"],
    [
      "an input beyond the size limit",
      { ...FREE, input: text("x".repeat(1024 * 1024 - 1)) },
      "LIMIT_EXCEEDED",
    ],
    ["an unknown contract", { ...FREE, contractId: "ct_ffffffffffff" }, "CONTRACT_NOT_FOUND"],
    ["a token without its contract", { ...SHOUT, workerToken: "sound" }, "INVALID_REQUEST"],
    ["a malformed token", { ...SHOUT, contractId: CONTRACT, workerToken: "junk" }, "TOKEN_DENIED"],
    ["a token of another principal", { ...FREE, contractId: CONTRACT, workerToken: "sound" }, "TOKEN_DENIED"],
    ["limits of zero", { ...FREE, limits: { total: durationFromMs(0) } }, "INVALID_REQUEST"],
  ] as [string, Draft, string][])("refuses %s", async (_name, draft, reason) => {
    expect((await refusal(create(draft))).reason).toBe(reason);
    expect((await platform.tasks.listTasks({}, as(ALICE))).tasks).toEqual([]);
  });

  test("names the field and the cause of a refusal", async () => {
    expect(await refusal(create({ ...SHOUT, input: text(7) }))).toMatchObject({ fields: ["draft.input"] });
    expect(await refusal(create({ ...SHOUT, capabilityHash: "ffffffff" }))).toMatchObject({
      metadata: { capability: "shout", current_hash: "0a1b2c3d" },
    });
    const elsewhere = { ...FREE, contractId: CONTRACT, workerToken: "sound" };
    expect(await refusal(create(elsewhere))).toMatchObject({ metadata: { denial: "delegatee_mismatch" } });
  });

  test("names an unavailable service, and stores nothing", async () => {
    platform.fakes.away.add("verifier");
    expect(await refusal(create(SHOUT))).toMatchObject({
      reason: "DEPENDENCY_UNAVAILABLE",
      metadata: { service: "verifier" },
    });
    platform.fakes.away.clear();
    expect((await platform.tasks.listTasks({}, as(ALICE))).tasks).toEqual([]);
  });

  test("with a contract bounds the whole task; the token's delegation is visible, the token is not", async () => {
    const draft: Draft = { ...SHOUT, contractId: CONTRACT, workerToken: "sound" };
    const { task } = await create(draft);
    expect(task).toMatchObject({ contractId: CONTRACT, delegationId: "del_0123456789ab" });
    expect(Number(task?.limits?.total?.seconds)).toBeLessThanOrEqual(600);
    expect(
      JSON.stringify(task, (_, value) => (typeof value === "bigint" ? `${value}` : value)),
    ).not.toContain("sound");
    platform.fakes.contractDeadlineMs = Date.now() - 1;
    expect(await refusal(create(draft))).toMatchObject({ fields: ["draft.contract_id"] });
  });
});

describe("a repeated creation", () => {
  test("with the same request id returns the existing task, also after its capability was removed", async () => {
    const request = { requestId: "once", draft: SHOUT };
    const { task } = await platform.tasks.createTask(request, as(ALICE));
    expect((await platform.tasks.createTask(request, as(ALICE))).task).toEqual(task);
    platform.fakes.capabilities.clear();
    expect((await platform.tasks.createTask(request, as(ALICE))).task).toEqual(task);
    expect((await platform.tasks.listTasks({}, as(ALICE))).tasks).toHaveLength(1);
  });

  test("in many concurrent calls makes one task", async () => {
    const request = { requestId: "once", draft: { ...FREE, externalId: "mine" } };
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => platform.tasks.createTask(request, as(ALICE))),
    );
    expect(new Set(answers.map(({ task }) => task?.id)).size).toBe(1);
  });

  test("with another draft is refused", async () => {
    await platform.tasks.createTask({ requestId: "once", draft: FREE }, as(ALICE));
    const other = { requestId: "once", draft: { ...FREE, description: "say goodbye" } };
    expect(await refusal(platform.tasks.createTask(other, as(ALICE)))).toMatchObject({
      reason: "REQUEST_ID_REUSED",
      metadata: { request_id: "once" },
    });
    expect((await platform.tasks.createTask(other, as(BOB))).task?.delegator).toBe(BOB);
  });

  test("with the same external id is the same task, or refused for another draft", async () => {
    const draft = { ...FREE, externalId: "mine" };
    const id = await idOf(draft);
    expect(await idOf(draft)).toBe(id);
    expect(await refusal(create({ ...draft, description: "other" }))).toMatchObject({
      reason: "TASK_ID_TAKEN",
      metadata: { external_id: "mine" },
    });
    expect(await idOf(draft, BOB)).not.toBe(id);
    const externalTask = await platform.tasks.getTask({ externalId: "mine" }, as(ALICE));
    expect(externalTask.task?.id).toBe(id);
  });
});

describe("the visibility of a task", () => {
  test.each([
    ["its delegator sees it", ALICE, SHOUT, ALICE, true],
    ["its delegate sees it", ALICE, SHOUT, BOB, true],
    ["another principal does not see it", BOB, FREE, ALICE, false],
  ])("%s", async (_name, delegator, draft, viewer, sees) => {
    const taskId = await idOf(draft, delegator);
    const calls = [
      platform.tasks.getTask({ taskId }, as(viewer)),
      collect(platform.tasks.watchTask({ taskId }, as(viewer)), 1),
    ];
    if (sees) {
      await Promise.all(calls);
      return;
    }
    const notFound = { reason: "TASK_NOT_FOUND", metadata: { task: taskId } };
    for (const refused of await Promise.all(calls.map(refusal))) expect(refused).toMatchObject(notFound);
  });

  test("an unknown task and an invisible one get the same refusal", async () => {
    const taskId = await idOf(FREE, BOB);
    const foreign = await refusal(platform.tasks.cancelTask({ taskId }, as(ALICE)));
    const nothing = await refusal(platform.tasks.cancelTask({ taskId: "nothing" }, as(ALICE)));
    expect({ ...foreign, metadata: {} }).toEqual({ ...nothing, metadata: {} });
  });
});

describe("a cancellation", () => {
  test("ends the task, and a repeated one gets the first answer", async () => {
    const taskId = await idOf(SHOUT);
    const first = await platform.tasks.cancelTask({ taskId, reason: "enough" }, as(ALICE));
    expect(first).toMatchObject({
      previousStatus: TaskStatus.PENDING,
      task: { status: TaskStatus.CANCELLED },
    });
    expect(first.task?.failure).toMatchObject({ reason: "CANCELLED", message: "enough" });
    expect(first.wasCancelled).toBe(false);
    expect(await platform.tasks.cancelTask({ taskId, reason: "more" }, as(ALICE))).toEqual({
      ...first,
      wasCancelled: true,
    });
  });

  test("finds the task by its delegator's external id, for no other caller", async () => {
    const taskId = await idOf({ ...SHOUT, externalId: "mine" });
    const cancelRequest = { externalId: "mine", reason: "enough" };
    expect(await refusal(platform.tasks.cancelTask(cancelRequest, as(BOB)))).toMatchObject({
      reason: "TASK_NOT_FOUND",
      metadata: { task: "mine" },
    });
    expect((await platform.tasks.cancelTask(cancelRequest, as(ALICE))).task?.id).toBe(taskId);
    for (const both of [{}, { taskId, externalId: "mine" }]) {
      expect((await refusal(platform.tasks.cancelTask(both, as(ALICE)))).reason).toBe("INVALID_REQUEST");
    }
  });

  test("by an external id needs the agent where several tasks have the id", async () => {
    platform.fakes.agents.set("other", { principal: BOB, active: true });
    const [first, second] = [
      await idOf({ ...FREE, externalId: "both" }),
      await idOf({ ...FREE, agentId: "other", externalId: "both" }),
    ];
    expect(second).not.toBe(first);
    const name = { externalId: "both" };
    expect(await refusal(platform.tasks.cancelTask({ externalId: "both" }, as(ALICE)))).toMatchObject({
      fields: ["agent_id"],
    });
    expect(await refusal(platform.tasks.getTask(name, as(ALICE)))).toMatchObject({
      fields: ["agent_id"],
    });
    const hers = { ...name, agentId: "other" };
    const [watched] = await collect(platform.tasks.watchTask(hers, as(ALICE)), 1);
    expect(watched?.taskEvent?.taskId).toBe(second);
    const { tasks: lineage } = await platform.tasks.getLineage(hers, as(ALICE));
    expect(lineage.map(({ id }) => id)).toEqual([second]);
    for (const wrong of [{}, { taskId: first, externalId: "both" }]) {
      expect(await refusal(platform.tasks.getTask(wrong, as(ALICE)))).toMatchObject({
        reason: "INVALID_REQUEST",
      });
    }
    const cancelled = await platform.tasks.cancelTask({ externalId: "both", agentId: "other" }, as(ALICE));
    expect(cancelled.task?.id).toBe(second);
    const { task } = await platform.tasks.getTask({ ...name, agentId: "worker" }, as(ALICE));
    expect(task).toMatchObject({ id: first, status: TaskStatus.PENDING });
    expect(await refusal(platform.tasks.getTask({ ...name, agentId: "third" }, as(ALICE)))).toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
  });

  test("is allowed for the delegator alone", async () => {
    const taskId = await idOf(SHOUT);
    expect((await refusal(platform.tasks.cancelTask({ taskId }, as(BOB)))).reason).toBe("CALLER_NOT_ALLOWED");
  });
});

describe("a watch of events", () => {
  test("by a delegation ends with the terminal event", async () => {
    const events: TaskStatus[] = [];
    for await (const { taskEvent: event } of platform.tasks.delegateTask(
      { requestId: "d", draft: SHOUT },
      as(ALICE),
    )) {
      events.push(event?.status ?? 0);
      if (event?.sequence === 1n) await platform.tasks.cancelTask({ taskId: event.taskId }, as(ALICE));
    }
    expect(events).toEqual([TaskStatus.PENDING, TaskStatus.CANCELLED]);
  });

  test("after a cursor returns the rest, after the last event nothing, beyond it an error", async () => {
    const taskId = await idOf(SHOUT);
    await platform.tasks.cancelTask({ taskId }, as(ALICE));
    const after = async (afterSequence: bigint) =>
      (await collect(platform.tasks.watchTask({ taskId, afterSequence }, as(ALICE)))).map(
        ({ taskEvent }) => taskEvent?.sequence,
      );
    expect(await after(0n)).toEqual([1n, 2n]);
    expect(await after(1n)).toEqual([2n]);
    expect(await after(2n)).toEqual([]);
    expect(await refusal(platform.tasks.watchTask({ taskId, afterSequence: 3n }, as(ALICE)))).toMatchObject({
      reason: "INVALID_REQUEST",
      fields: ["after_sequence"],
    });
  });

  test("has the same order for each of many watchers", async () => {
    const taskId = await idOf(SHOUT);
    const watchers = Array.from({ length: 30 }, () =>
      collect(platform.tasks.watchTask({ taskId }, as(ALICE))),
    );
    await platform.tasks.cancelTask({ taskId }, as(ALICE));
    for (const events of await Promise.all(watchers)) {
      expect(events.map(({ taskEvent }) => taskEvent?.sequence)).toEqual([1n, 2n]);
    }
  });
});

describe("a list of tasks", () => {
  test("contains the caller's tasks, newest first, without inputs, page by page", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 5; i++) ids.unshift(await idOf(SHOUT));
    await idOf(SHOUT, BOB);
    const listed: string[] = [];
    let pageToken = "";
    do {
      const page = await platform.tasks.listTasks({ pageSize: 2, pageToken }, as(ALICE));
      expect(page.tasks.length).toBeLessThanOrEqual(2);
      for (const task of page.tasks) expect(task.input).toBeUndefined();
      listed.push(...page.tasks.map((task) => task.id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(listed).toEqual(ids);
  });

  test("is filtered by agent, status and correlation", async () => {
    const shout = await idOf({ ...SHOUT, correlationId: "c1" });
    const free = await idOf({ ...FREE, correlationId: "c1" });
    const ended = await idOf(FREE);
    await platform.tasks.cancelTask({ taskId: ended }, as(ALICE));
    const list = async (filter: object) =>
      (await platform.tasks.listTasks(filter, as(ALICE))).tasks.map((task) => task.id);
    expect(await list({ agentId: "bob" })).toEqual([shout]);
    expect(await list({ statuses: [TaskStatus.CANCELLED] })).toEqual([ended]);
    expect(await list({ correlationId: "c1" })).toEqual([free, shout]);
    expect(await list({ correlationId: "c1", agentId: "worker", statuses: [TaskStatus.PENDING] })).toEqual([
      free,
    ]);
  });

  test("is filtered by capability and creation time", async () => {
    const shout = await idOf(SHOUT);
    const free = await idOf(FREE);
    const list = async (filter: object) =>
      (await platform.tasks.listTasks(filter, as(ALICE))).tasks.map((task) => task.id);
    const { task } = await platform.tasks.getTask({ taskId: shout }, as(ALICE));
    const created = task?.createTime ?? toTimestamp(0);
    const later = { ...created, seconds: created.seconds + 60n };
    expect(await list({ capabilityId: "shout" })).toEqual([shout]);
    expect(await list({ createdFrom: created, createdBefore: later })).toEqual([free, shout]);
    expect(await list({ createdFrom: later })).toEqual([]);
    expect(await list({ createdBefore: created })).toEqual([]);
  });

  test("refuses the page token of another list", async () => {
    await idOf(FREE);
    await idOf(FREE);
    const { nextPageToken: pageToken } = await platform.tasks.listTasks({ pageSize: 1 }, as(ALICE));
    const other = platform.tasks.listTasks({ pageToken, agentId: "bob" }, as(ALICE));
    expect((await refusal(other)).reason).toBe("PAGE_TOKEN_INVALID");
  });
});
