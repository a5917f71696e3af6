import { TaskState } from "@a2a-js/sdk";
import type { JsonObject } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { all, BINDINGS, clientOver, request, userMessage } from "./scene.ts";

let platform: TestPlatform;
/** The messages that the worker saw, by their ids. */
const seen = new Map<string, JsonObject | undefined>();

beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker");
  platform.work("worker", async (input, { message, partial, ask }) => {
    seen.set(String(message?.messageId), message);
    if (input === "log") {
      const log = (text: string, more: object) =>
        partial({ artifacts: [{ artifactId: "log", parts: [{ text }], ...more }] });
      await log("one", {});
      await log("two", { append: true });
      await log("three", { append: true, lastChunk: true });
      return { output: { artifacts: [{ artifactId: "log", parts: [{ text: "one two three" }] }] } };
    }
    if (input === "input" || input === "authorization") return { output: await ask("?", undefined, input) };
    return { output: { words: 3 } };
  });
  return () => platform.stop();
}, 60_000);

const configured = (text: string, configuration: object) => ({
  ...request(userMessage(text)),
  configuration: { acceptedOutputModes: [], returnImmediately: false, ...configuration } as never,
});

describe.each(BINDINGS)("over %s", (binding) => {
  const connect = () => clientOver(platform.url, "worker", binding);

  test("the worker sees the message: its parts, its metadata and the tasks that it refers to", async () => {
    const client = await connect();
    const message = userMessage(
      [
        { $case: "text", value: "count" },
        { $case: "data", value: { to: 3 } },
      ],
      { metadata: { skill: "sum" }, referenceTaskIds: ["earlier"], contextId: "talk" },
    );
    await client.sendMessage(request(message));
    expect(seen.get(message.messageId)).toEqual({
      messageId: message.messageId,
      contextId: "talk",
      role: "ROLE_USER",
      parts: [{ text: "count" }, { data: { to: 3 } }],
      metadata: { skill: "sum" },
      referenceTaskIds: ["earlier"],
    });
  });

  test("a worker appends to an artifact, and a stream says which parts follow", async () => {
    const client = await connect();
    const events = await all(client.sendMessageStream(request(userMessage("log"))));
    const updates = events.flatMap(({ payload }) =>
      payload?.$case === "artifactUpdate" ? [payload.value] : [],
    );
    expect(
      updates.map(({ artifact, append, lastChunk }) => [
        artifact?.artifactId,
        artifact?.parts[0]?.content?.value,
        append ?? false,
        lastChunk ?? false,
      ]),
    ).toEqual([
      ["log", "one", false, false],
      ["log", "two", true, false],
      ["log", "three", true, true],
      ["log", "one two three", false, true],
    ]);
  });

  test.each([
    { modes: [], content: { $case: "data", value: { words: 3 } } },
    { modes: ["text/plain"], content: { $case: "text", value: '{"words":3}' } },
    { modes: ["image/png"], content: { $case: "data", value: { words: 3 } } },
  ])("a result comes in the accepted media types $modes", async ({ modes, content }) => {
    const client = await connect();
    const asked = configured("count", { acceptedOutputModes: modes });
    const answer = await client.sendMessage(asked);
    expect(answer).toMatchObject({ artifacts: [{ parts: [{ content }] }] });
    const events = await all(client.sendMessageStream(configured("count", { acceptedOutputModes: modes })));
    const updates = events.flatMap(({ payload }) =>
      payload?.$case === "artifactUpdate" ? [payload.value] : [],
    );
    expect(updates).toMatchObject([{ artifact: { parts: [{ content }] } }]);
  });

  test("a list by AUTH_REQUIRED has full pages, although questions for input lie between", async () => {
    const client = await connect();
    const contextId = crypto.randomUUID();
    const ids: string[] = [];
    for (const text of ["authorization", "input", "input", "input", "authorization", "input"]) {
      const task = await client.sendMessage(request(userMessage(text, { contextId })));
      ids.push((task as { id: string }).id);
    }
    const page = await client.listTasks({
      tenant: "",
      contextId,
      status: TaskState.TASK_STATE_AUTH_REQUIRED,
      pageSize: 2,
      pageToken: "",
      statusTimestampAfter: undefined,
    });
    expect(page.tasks.map(({ status }) => status?.state)).toEqual([
      TaskState.TASK_STATE_AUTH_REQUIRED,
      TaskState.TASK_STATE_AUTH_REQUIRED,
    ]);
    // The questions occupy the worker.
    for (const taskId of ids) await platform.clients.tasks.cancelTask({ taskId });
  });
});

test("a task that began otherwise has no message", async () => {
  const { tasks } = platform.clients;
  const { task } = await tasks.createTask({
    requestId: crypto.randomUUID(),
    draft: { agentId: "worker", description: "count" },
    wait: { seconds: 10n },
  });
  expect(task?.isConversation).toBe(false);
  expect(seen.get("undefined")).toBeUndefined();
  expect(seen.has("undefined")).toBe(true);
});
