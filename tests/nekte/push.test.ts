import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WorkFailure, WorkSuspension } from "@depute/client";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { capability, introduce, startPlatform, type TestPlatform, value } from "../gateway/platform.ts";

/** Functions that release waiting work, by the work's description. */
const heldCalls = new Map<string, () => void>();

let near: TestPlatform;
let far: TestPlatform;

beforeAll(async () => {
  far = await startPlatform();
  near = await startPlatform(["--tasks-outbound-hosts", "127.0.0.1"]);
  await introduce(far, "worker", [["sentiment"], ["fails"]]);
  far.work("worker", async (input, { task, progress, partial, signal, saved, contexts }) => {
    if (task.capabilityId === "fails") throw new WorkFailure("NO_LEXICON", "there is no lexicon", false);
    if (task.capabilityId !== "") return { output: { got: input } };
    if (task.description === "suspend" && saved === undefined) throw new WorkSuspension("later", { done: 1 });
    await progress(1, 2, "half");
    await partial({ so: "far" });
    if (task.description.startsWith("wait")) {
      await new Promise<void>((resolve) => {
        heldCalls.set(task.description, resolve);
        if (signal.aborted) resolve();
        else signal.addEventListener("abort", () => resolve(), { once: true });
      });
      signal.throwIfAborted();
    }
    const data = contexts.map(({ envelope }) => JSON.parse(new TextDecoder().decode(envelope?.data)));
    return { output: { input, data, saved: saved ?? null }, compact: { short: true }, minimal: "done" };
  });
});
afterAll(async () => {
  await near.stop();
  await far.stop();
});

/** Registers an agent of the near platform whose endpoint is an agent of the far platform. */
async function agentAt(id: string, endpoint: string) {
  await near.clients.agents.registerAgent({
    requestId: crypto.randomUUID(),
    agent: { id, nekte: { endpoint } },
  });
}

async function eventsOf(draft: object): Promise<TaskEvent[]> {
  const events: TaskEvent[] = [];
  const requestId = crypto.randomUUID();
  for await (const { taskEvent: event } of near.clients.tasks.delegateTask({ requestId, draft })) {
    if (event !== undefined) events.push(event);
  }
  return events;
}

async function until(holds: () => boolean | Promise<boolean>) {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 10));
}

const json = (data: unknown) => new TextEncoder().encode(JSON.stringify(data));

const kinds = (events: readonly TaskEvent[]) => events.map(({ payload }) => payload.case);

const FULL = { maxTokens: 1000, detailLevel: "full" };

describe.each([
  ["http", () => `${far.url}/nekte/worker`],
  ["grpc", () => `grpc://${new URL(far.url).host}/worker`],
])("an agent of another Depute, over %s", (protocol, address) => {
  const agentId = `remote-${protocol}`;
  beforeAll(() => agentAt(agentId, address()));

  test("runs tasks without a capability, and its events are relayed", async () => {
    const input = value({ reviews: 3 });
    const events = await eventsOf({ agentId, description: "x", input, budget: FULL });
    expect(kinds(events)).toEqual(["created", "accepted", "started", "progress", "partial", "completed"]);
    const last = events.at(-1)?.payload;
    expect(last?.case === "completed" && last.value.output).toMatchObject({
      minimal: "done",
      compact: value({ short: true }),
      full: value({ input: { reviews: 3 }, data: [{ reviews: 3 }], saved: null }),
    });
  });

  test("gets a context that may not be persisted, with its permissions", async () => {
    const permissions = { forward: false, persist: false, derive: true };
    const contexts = ["a", "b"].map((data) => ({ data: json(data), permissions, ttlS: 60 }));
    const events = await eventsOf({ agentId, description: "x", contexts, budget: FULL });
    const last = events.at(-1)?.payload;
    // `input` comes with the work itself; `data` comes from a context shared with the agent.
    expect(last?.case === "completed" && last.value.output?.full).toEqual(
      value({ input: "a", data: ["a"], saved: null }),
    );
  });

  test("is invoked for a capability", async () => {
    await publish(agentId);
    const endedEvents = (await eventsOf({ agentId, capabilityId: "sentiment", input: value({ a: 1 }) })).at(
      -1,
    );
    expect(endedEvents?.payload).toMatchObject({
      case: "completed",
      value: { output: { full: value({ got: { a: 1 } }) } },
    });
    const failed = (await eventsOf({ agentId, capabilityId: "fails", input: value({}) })).at(-1);
    expect(failed?.payload).toMatchObject({
      case: "failed",
      value: { reason: "TASK_FAILED", message: "there is no lexicon" },
    });
  });

  test("receives the cancellation of its work", async () => {
    const description = `wait to be cancelled ${protocol}`;
    const externalId = `cancelled-${protocol}`;
    const read = eventsOf({ agentId, description, externalId });
    await until(() => heldCalls.has(description));
    const { task } = await near.clients.tasks.cancelTask({ externalId, reason: "changed my mind" });
    expect(kinds(await read).at(-1)).toBe("cancelled");
    await until(async () => (await farTask(task?.id ?? "")).status === TaskStatus.CANCELLED);
    expect((await farTask(task?.id ?? "")).failure?.message).toContain("changed my mind");
  });

  test("suspends its task, and continues when it is resumed here", async () => {
    const externalId = `suspended-${protocol}`;
    const read = eventsOf({ agentId, description: "suspend", externalId, budget: FULL });
    await until(async () => (await nearStatus(externalId)) === TaskStatus.SUSPENDED);
    await near.clients.tasks.resumeTask({ externalId });
    const events = await read;
    expect(kinds(events)).toEqual([
      ...["created", "accepted", "started", "checkpointed", "suspended", "resumed"],
      ...["accepted", "started", "progress", "partial", "completed"],
    ]);
    const last = events.at(-1)?.payload;
    expect(last?.case === "completed" && last.value.output?.full).toEqual(
      value({ input: null, data: [], saved: { done: 1 } }),
    );
  });

  test("is cancelled on suspension, and starts again on resumption", async () => {
    const description = `wait to be suspended ${protocol}`;
    const externalId = `interrupted-${protocol}`;
    const read = eventsOf({ agentId, description, externalId });
    await until(() => heldCalls.has(description));
    heldCalls.delete(description);
    const { task } = await near.clients.tasks.suspendTask({ externalId, reason: "later" });
    const id = task?.id ?? "";
    await until(async () => (await farTask(id)).status === TaskStatus.CANCELLED);
    await until(async () => (await nearStatus(externalId)) === TaskStatus.SUSPENDED);
    await near.clients.tasks.resumeTask({ externalId });
    await until(() => heldCalls.has(description));
    heldCalls.get(description)?.();
    expect(kinds(await read).at(-1)).toBe("completed");
  });
});

test("a task with a context in memory alone survives a restart of the delegating platform", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "depute-push-"));
  const flags = ["--tasks-outbound-hosts", "127.0.0.1", "--data-dir", dataDir];
  const begin = async () => {
    near = await startPlatform(flags);
  };
  const before = near;
  try {
    await begin();
    await agentAt("remote", `${far.url}/nekte/worker`);
    const description = "wait for the other";
    const permissions = { forward: false, persist: false, derive: true };
    const contexts = [{ data: json("between us"), permissions, ttlS: 60 }];
    const draft = { agentId: "remote", description, contexts, budget: FULL, externalId: "outlives" };
    const { task } = await near.clients.tasks.createTask({ requestId: "1", draft });
    await until(
      async () => (await nearStatus("outlives")) === TaskStatus.RUNNING && heldCalls.has(description),
    );
    await near.stop();
    await begin();
    await until(async () => (await nearStatus("outlives")) === TaskStatus.RUNNING);
    heldCalls.get(description)?.();
    const events: TaskEvent[] = [];
    for await (const { taskEvent: event } of near.clients.tasks.watchTask({ taskId: task?.id ?? "" })) {
      if (event !== undefined) events.push(event);
    }
    const last = events.at(-1)?.payload;
    expect(last?.case === "completed" && last.value.output?.full).toEqual(
      value({ input: "between us", data: ["between us"], saved: null }),
    );
    // After the restart, the earlier events are not repeated.
    expect(kinds(events).filter((kind) => kind === "progress" || kind === "partial")).toEqual([
      "progress",
      "partial",
    ]);
  } finally {
    await near.stop();
    near = before;
    rmSync(dataDir, { recursive: true, force: true });
  }
});

/** The status of a task; undefined before the task exists. */
async function nearStatus(externalId: string) {
  const name = { externalId };
  const pendingTask = near.clients.tasks.getTask(name);
  return (await pendingTask.catch(() => undefined))?.task?.status;
}

/** Returns the far platform's task for a task of the near platform. */
async function farTask(nearId: string) {
  const { task } = await far.clients.tasks.getTask({ externalId: nearId });
  if (task === undefined) throw new Error("no such task there");
  return task;
}

async function publish(agentId: string) {
  await near.clients.agents.publishCapabilities({
    requestId: crypto.randomUUID(),
    agentId,
    capabilities: [capability("sentiment"), capability("fails")],
  });
}
