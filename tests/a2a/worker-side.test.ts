import { type StreamResponse, type Task, TaskState } from "@a2a-js/sdk";
import type { JsonObject } from "@bufbuild/protobuf";
import { WorkFailure } from "@depute/client";
import { A2A_EXTENSIONS } from "@depute/core";
import { beforeAll, describe, expect, test } from "vitest";
import { introduce, startPlatform, type TestPlatform } from "../gateway/platform.ts";
import { all, BINDINGS, clientOver, request, userMessage } from "./scene.ts";

let platform: TestPlatform;
/** The messages that the worker saw, by their ids. */
const seen = new Map<string, JsonObject | undefined>();
/** The messages of each task that asked for input, by the id of its first message. */
const conversations = new Map<string, readonly JsonObject[]>();

beforeAll(async () => {
  platform = await startPlatform();
  await introduce(platform, "worker");
  platform.work("worker", async (input, { message, messages, partial, ask }) => {
    seen.set(String(message?.messageId), message);
    if (input === "many" || input === "large") {
      const [count, text] = input === "many" ? [101, ""] : [5, "x".repeat(250_000)];
      for (let place = 0; place < count; place++) {
        const part = { text: `${place}${text}` };
        await partial({ artifacts: [{ artifactId: "log", parts: [part], append: true }] });
      }
      return { output: await ask("go on?") };
    }
    if (input === "wait") {
      await partial({ artifacts: [{ artifactId: "log", parts: [{ text: "one" }] }] });
      await partial({ artifacts: [{ artifactId: "log", parts: [{ text: "two" }], append: true }] });
      await ask("go on?");
      await partial({ artifacts: [{ artifactId: "log", parts: [{ text: "three" }], append: true }] });
      throw new WorkFailure("NO_LUCK", "there was no luck", false);
    }
    if (input === "log") {
      const log = (text: string, more: object) =>
        partial({ artifacts: [{ artifactId: "log", parts: [{ text }], ...more }] });
      await log("one", {});
      await log("two", { append: true });
      await log("three", { append: true, lastChunk: true });
      return { output: { artifacts: [{ artifactId: "log", parts: [{ text: "one two three" }] }] } };
    }
    if (input === "talk") {
      const words = [await ask("first?"), await ask("second?")];
      conversations.set(String(message?.messageId), messages);
      return { output: words };
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

/** Returns the texts of a task's artifact `log`. */
const logOf = ({ artifacts }: Task) =>
  artifacts
    .find(({ artifactId }) => artifactId === "log")
    ?.parts.map(({ content }) => (content?.$case === "text" ? content.value : undefined));

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

  test("the worker sees the messages that answer its questions, with parts that are not text", async () => {
    const client = await connect();
    const first = userMessage("talk");
    const { id, contextId } = (await client.sendMessage(request(first))) as Task;
    const named = { taskId: id, contextId };
    const file = { $case: "url", value: "https://example.org/plan.pdf" } as const;
    const second = userMessage([file], { ...named, metadata: { page: 3 } });
    const third = userMessage("go", named);
    await client.sendMessage(request(second));
    await client.sendMessage(request(third));
    expect(conversations.get(first.messageId)).toEqual([
      expect.objectContaining({ messageId: first.messageId }),
      {
        ...{ messageId: second.messageId, taskId: id, contextId, role: "ROLE_USER" },
        ...{ parts: [{ url: "https://example.org/plan.pdf" }], metadata: { page: 3 } },
      },
      expect.objectContaining({ messageId: third.messageId, parts: [{ text: "go" }] }),
    ]);
  });

  test("a worker appends to an artifact, and a stream marks the parts that follow", async () => {
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

  test("a later reader gets the artifact so far, and then only the parts that follow", async () => {
    const client = await connect();
    const asked = (await client.sendMessage(request(userMessage("wait")))) as Task;
    const soFar = await client.getTask({ tenant: "", id: asked.id });
    expect(logOf(soFar)).toEqual(["one", "two"]);
    const subscribed = client.resubscribeTask({ tenant: "", id: asked.id });
    const first = await subscribed.next();
    const payload = (first.value as StreamResponse).payload;
    expect(payload?.$case === "task" && logOf(payload.value)).toEqual(["one", "two"]);
    const answer = userMessage("yes", { taskId: asked.id, contextId: asked.contextId });
    const ended = (await client.sendMessage(request(answer))) as Task;
    const updates = (await all(subscribed)).flatMap(({ payload }) =>
      payload?.$case === "artifactUpdate" ? [payload.value] : [],
    );
    expect(updates).toMatchObject([{ append: true, artifact: { parts: [{ content: { value: "three" } }] } }]);
    // The task failed without a result, so every answer contains its preliminary artifacts.
    expect(ended.status?.state).toBe(TaskState.TASK_STATE_FAILED);
    expect(logOf(ended)).toEqual(["one", "two", "three"]);
    expect(logOf(await client.getTask({ tenant: "", id: asked.id }))).toEqual(["one", "two", "three"]);
  });

  test("a reader that resumes gets the artifact as of its event, and no part twice", async () => {
    const client = await connect();
    const { id, contextId } = (await client.sendMessage(request(userMessage("wait")))) as Task;
    await client.sendMessage(request(userMessage("yes", { taskId: id, contextId })));
    const { uri } = A2A_EXTENSIONS.RESUMABLE_STREAMS;
    const readAfter = async (sequence: number) => {
      const serviceParameters = { "A2A-Extensions": uri, "A2A-After-Sequence": String(sequence) };
      const events = await all(client.resubscribeTask({ tenant: "", id }, { serviceParameters }));
      const first = events[0]?.payload;
      const chunks = events.flatMap(({ payload }) =>
        payload?.$case === "artifactUpdate"
          ? [
              {
                text: payload.value.artifact?.parts[0]?.content?.value,
                sequence: payload.value.metadata?.[uri]?.sequence as number,
              },
            ]
          : [],
      );
      return { before: first?.$case === "task" ? logOf(first.value) : undefined, chunks };
    };
    const { before, chunks } = await readAfter(1);
    expect(before).toBeUndefined();
    expect(chunks.map(({ text }) => text)).toEqual(["one", "two", "three"]);
    const rest = await readAfter(chunks[1]?.sequence ?? 0);
    expect(rest.before).toEqual(["one", "two"]);
    expect(rest.chunks).toEqual(chunks.slice(2));
  });

  test.each([
    { modes: [], content: { $case: "data", value: { words: 3 } } },
    { modes: ["text/plain"], content: { $case: "text", value: '{"words":3}' } },
    { modes: ["image/png"], content: { $case: "data", value: { words: 3 } } },
  ])("a result is sent in the accepted media types $modes", async ({ modes, content }) => {
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

  test("lists by AUTH_REQUIRED and INPUT_REQUIRED have full pages, and count their own tasks", async () => {
    const client = await connect();
    const contextId = crypto.randomUUID();
    const ids: string[] = [];
    for (const text of [
      "authorization",
      "input",
      "input",
      "input",
      "authorization",
      "input",
      "authorization",
    ]) {
      const task = await client.sendMessage(request(userMessage(text, { contextId })));
      ids.push((task as { id: string }).id);
    }
    const list = (status: TaskState, pageToken = "") =>
      client.listTasks({
        tenant: "",
        contextId,
        status,
        pageSize: 2,
        pageToken,
        statusTimestampAfter: undefined,
      });
    const { TASK_STATE_AUTH_REQUIRED, TASK_STATE_INPUT_REQUIRED } = TaskState;
    for (const [state, places] of [
      [TASK_STATE_AUTH_REQUIRED, [0, 4, 6]],
      [TASK_STATE_INPUT_REQUIRED, [1, 2, 3, 5]],
    ] as const) {
      const first = await list(state);
      const second = await list(state, first.nextPageToken);
      const tasks = [...first.tasks, ...second.tasks];
      expect(first.tasks).toHaveLength(2);
      expect(tasks.map(({ status }) => status?.state)).toEqual(places.map(() => state));
      expect(tasks.map(({ id }) => ids.indexOf(id)).toSorted()).toEqual([...places]);
      expect([first.totalSize, second.totalSize]).toEqual([places.length, places.length]);
      expect(second.nextPageToken).toBe("");
    }
    // An answered question leaves the list.
    const answer = userMessage("yes", { taskId: ids[0] ?? "", contextId });
    await client.sendMessage(request(answer));
    expect(await list(TASK_STATE_AUTH_REQUIRED)).toMatchObject({ totalSize: 2 });
    // The open questions occupy the worker, so the test cancels their tasks.
    for (const taskId of ids.slice(1)) await platform.clients.tasks.cancelTask({ taskId });
  });
});

test.each([
  { work: "many", first: "1", count: 100 },
  { work: "large", first: `1${"x".repeat(250_000)}`, count: 4 },
])("GetTask shows the newest of $work preliminary results: at most 100, and 1 MiB", async (expected) => {
  const client = await clientOver(platform.url, "worker", "JSONRPC");
  const { id } = (await client.sendMessage(request(userMessage(expected.work)))) as Task;
  const texts = logOf(await client.getTask({ tenant: "", id }));
  expect(texts).toHaveLength(expected.count);
  expect(texts?.[0]).toBe(expected.first);
  await platform.clients.tasks.cancelTask({ taskId: id });
});

test("a task that another call created has no message", async () => {
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
