import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentCard } from "@a2a-js/sdk";
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { TaskQuestionKind, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { AgentCardSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { kinds, lastOf, until } from "../nekte/endpoint-scene.ts";
import { type Elsewhere, startElsewhere } from "./elsewhere.ts";
import { BINDINGS } from "./scene.ts";

const FLAGS = ["--tasks-outbound-hosts", "127.0.0.1"];

/** Registers an agent by the card that the agent's own server publishes. */
async function register(id: string, { card }: Elsewhere, { clients }: TestPlatform): Promise<void> {
  const a2aCard = fromJson(AgentCardSchema, AgentCard.toJSON(card) as JsonValue);
  await clients.agents.registerAgent({ requestId: crypto.randomUUID(), agent: { id, a2aCard } });
}

async function eventsOf({ clients }: TestPlatform, draft: object): Promise<TaskEvent[]> {
  const events: TaskEvent[] = [];
  const request = { requestId: crypto.randomUUID(), draft };
  for await (const { taskEvent } of clients.tasks.delegateTask(request)) {
    if (taskEvent !== undefined) events.push(taskEvent);
  }
  return events;
}

async function create({ clients }: TestPlatform, agentId: string, description: string): Promise<string> {
  const { task } = await clients.tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId, description },
  });
  return task?.id ?? "";
}

const value = (json: JsonValue) => fromJson(ValueSchema, json);
const completed = (output: JsonValue) => ({
  case: "completed",
  value: { output: { full: value(output) } },
});

describe.each(BINDINGS)("an agent elsewhere, over %s,", (binding) => {
  let platform: TestPlatform;
  let elsewhere: Elsewhere;

  beforeAll(async () => {
    [platform, elsewhere] = await Promise.all([startPlatform(FLAGS), startElsewhere(binding)]);
    await register("afar", elsewhere, platform);
  }, 60_000);
  afterAll(async () => {
    await platform.stop();
    await elsewhere.close();
  }, 60_000);

  test.each<[string, object, object[], JsonValue]>([
    ["a description", { description: "hello" }, [{ $case: "text", value: "hello" }], "hello"],
    [
      "an input of data",
      { description: "", input: value({ n: [1] }) },
      [{ $case: "data", value: { n: [1] } }],
      { n: [1] },
    ],
    [
      "both",
      { description: "count", input: value("a b") },
      [
        { $case: "text", value: "count" },
        { $case: "text", value: "a b" },
      ],
      "count\na b",
    ],
    [
      "an input of A2A's parts",
      { description: "", input: value({ parts: [{ url: "https://example.com/a.png" }, { text: "x" }] }) },
      [
        { $case: "url", value: "https://example.com/a.png" },
        { $case: "text", value: "x" },
      ],
      { parts: [{ url: "https://example.com/a.png" }, { text: "x" }] },
    ],
  ])("gets %s as a message, and returns its artifact", async (_, draft, parts, output) => {
    const events = await eventsOf(platform, { agentId: "afar", ...draft });
    expect(elsewhere.messages.at(-1)?.parts.map(({ content }) => content)).toEqual(parts);
    expect(lastOf(events)).toMatchObject(completed(output));
  });

  test("reports progress, and its artifact in pieces becomes the result", async () => {
    const events = await eventsOf(platform, { agentId: "afar", description: "report" });
    const progress = events.find(({ payload }) => payload.case === "progress");
    expect(progress?.payload.value).toMatchObject({ message: "half way" });
    expect(lastOf(events)).toMatchObject(completed("one \ntwo"));
  });

  test("returns several artifacts in the form of A2A", async () => {
    const events = await eventsOf(platform, { agentId: "afar", description: "files" });
    const artifacts = [
      { artifactId: "a", parts: [{ text: "one" }] },
      { artifactId: "b", parts: [{ text: "two" }] },
    ];
    expect(lastOf(events)).toMatchObject(completed({ artifacts }));
  });

  test("can answer with a message instead of a task", async () => {
    const events = await eventsOf(platform, { agentId: "afar", description: "reply" });
    expect(lastOf(events)).toMatchObject(completed("a reply"));
  });

  test.each([
    ["ask", "which colour?", TaskQuestionKind.INPUT, undefined],
    ["authorize", "log in first", TaskQuestionKind.AUTHORIZATION, { needs: "authorization" }],
  ])("asks (%s), and continues with the delegator's answer", async (description, prompt, kind, details) => {
    const id = await create(platform, "afar", description);
    const { tasks } = platform.clients;
    const read = async () => (await tasks.getTask({ taskId: id })).task;
    await until(async () => (await read())?.status === TaskStatus.INPUT_REQUIRED);
    const { question } = (await read()) ?? {};
    expect(question).toMatchObject({ prompt, kind, ...(details && { details: value(details) }) });
    await tasks.provideInput({ requestId: crypto.randomUUID(), taskId: id, input: value("red") });
    await until(async () => (await read())?.status === TaskStatus.COMPLETED);
    expect(elsewhere.messages.at(-1)?.taskId).not.toBe("");
    expect((await read())?.output).toMatchObject({ full: value("red") });
  });

  test.each([
    ["fail", "TASK_FAILED", "there was no luck"],
    ["reject", "REJECTED", "not my work"],
  ])("that ends with %s fails the task without a retry", async (description, reason, message) => {
    const events = await eventsOf(platform, { agentId: "afar", description });
    expect(kinds(events)).not.toContain("requeued");
    expect(lastOf(events)).toMatchObject({ case: "failed", value: { reason, message, retryable: false } });
  });

  test("is asked to cancel a task that is cancelled on the platform", async () => {
    const before = elsewhere.cancelled.length;
    const id = await create(platform, "afar", "wait");
    await until(
      async () => (await platform.clients.tasks.getTask({ taskId: id })).task?.progress !== undefined,
    );
    await platform.clients.tasks.cancelTask({ taskId: id });
    await until(() => elsewhere.cancelled.length > before);
  });
});

describe("an agent elsewhere", () => {
  test.each(["JSONRPC", "HTTP+JSON"] as const)(
    "over %s continues after broken connections",
    async (binding) => {
      const platform = await startPlatform(FLAGS);
      const elsewhere = await startElsewhere(binding);
      try {
        await register("afar", elsewhere, platform);
        const id = await create(platform, "afar", "wait");
        const read = async () => (await platform.clients.tasks.getTask({ taskId: id })).task;
        await until(async () => (await read())?.progress !== undefined);
        elsewhere.drop();
        elsewhere.finish();
        await until(async () => (await read())?.status === TaskStatus.COMPLETED);
        expect(elsewhere.messages).toHaveLength(1);
      } finally {
        await platform.stop();
        await elsewhere.close();
      }
    },
  );

  test("without streams is polled until the end", async () => {
    const platform = await startPlatform(FLAGS);
    const elsewhere = await startElsewhere("JSONRPC", false);
    try {
      await register("slow", elsewhere, platform);
      const id = await create(platform, "slow", "wait");
      await until(() => elsewhere.messages.length === 1);
      elsewhere.finish();
      const read = async () => (await platform.clients.tasks.getTask({ taskId: id })).task?.status;
      await until(async () => (await read()) === TaskStatus.COMPLETED);
      expect(elsewhere.messages).toHaveLength(1);
    } finally {
      await platform.stop();
      await elsewhere.close();
    }
  }, 60_000);

  test("keeps its task during a restart of the platform", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "depute-a2a-"));
    const flags = [...FLAGS, "--data-dir", dataDir];
    const elsewhere = await startElsewhere("HTTP+JSON");
    let platform = await startPlatform(flags);
    try {
      await register("afar", elsewhere, platform);
      const id = await create(platform, "afar", "wait");
      await until(
        async () => (await platform.clients.tasks.getTask({ taskId: id })).task?.progress !== undefined,
      );
      await platform.stop();
      platform = await startPlatform(flags);
      elsewhere.finish();
      await until(
        async () =>
          (await platform.clients.tasks.getTask({ taskId: id })).task?.status === TaskStatus.COMPLETED,
      );
      expect(elsewhere.messages).toHaveLength(1);
    } finally {
      await platform.stop();
      await elsewhere.close();
      rmSync(dataDir, { recursive: true });
    }
  }, 60_000);
});
