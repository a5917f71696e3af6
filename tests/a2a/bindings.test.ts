import { Role, TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { all, BINDINGS, request, Scene, userMessage } from "./scene.ts";

describe.each(BINDINGS)("%s", (binding) => {
  const scene = new Scene(binding);

  describe("SendMessage", () => {
    test("waits for the end, and returns the result and the messages", async () => {
      const message = userMessage("hello");
      const task = await scene.send(message);
      expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(task.artifacts).toHaveLength(1);
      expect(task.artifacts[0]).toMatchObject({
        artifactId: "result",
        parts: [{ content: { $case: "text", value: "hello" } }],
      });
      expect(task.history).toMatchObject([{ messageId: message.messageId, parts: message.parts }]);
      expect(task.contextId).not.toBe("");
    });

    test("passes data to a worker, and returns data", async () => {
      const value = { words: ["a", { b: null }] };
      const echoed = await scene.send(userMessage([{ $case: "data", value }]));
      expect(echoed.artifacts[0]?.parts[0]?.content).toEqual({ $case: "data", value });
      const given = await scene.send(userMessage("data"));
      expect(given.artifacts[0]?.parts[0]?.content).toEqual({
        $case: "data",
        value: { words: 3, list: [null, true] },
      });
    });

    test("returns the artifacts that a worker creates, in an answer and in a stream", async () => {
      const expected = [
        {
          artifactId: "summary",
          name: "Summary",
          parts: [{ content: { $case: "text", value: "three words" } }],
        },
        { artifactId: "picture", parts: [{ filename: "a.png", mediaType: "image/png" }] },
      ];
      const { artifacts } = await scene.send(userMessage("files"));
      expect(artifacts).toMatchObject(expected);
      expect(artifacts[1]?.parts[0]?.content?.value).toEqual(Buffer.from([0, 1, 255]));
      const events = await all(scene.client.sendMessageStream(request(userMessage("files"))));
      const updates = events.flatMap(({ payload }) =>
        payload?.$case === "artifactUpdate" ? [payload.value] : [],
      );
      expect(updates.map(({ artifact }) => artifact)).toMatchObject(expected);
      expect(updates.every(({ lastChunk }) => lastChunk)).toBe(true);
    });

    test("passes files and addresses to a worker in the form of A2A", async () => {
      const raw = Buffer.from([0, 1, 255]);
      const task = await scene.send(
        userMessage([
          { $case: "text", value: "look" },
          { $case: "raw", value: raw },
          { $case: "url", value: "https://example.com/a.png" },
        ]),
      );
      // The worker returns the value that it received, so the artifact has the same parts.
      expect(task.artifacts[0]?.parts.map(({ content }) => content)).toEqual([
        { $case: "text", value: "look" },
        { $case: "raw", value: raw },
        { $case: "url", value: "https://example.com/a.png" },
      ]);
    });

    test("keeps the caller's context, and creates one for a message without", async () => {
      const first = await scene.send(userMessage("one", { contextId: "talk 1" }));
      expect(first.contextId).toBe("talk 1");
      const [second, third] = await Promise.all([
        scene.send(userMessage("two")),
        scene.send(userMessage("three")),
      ]);
      expect(second.contextId).not.toBe(third.contextId);
      expect(second.id).not.toBe(third.id);
    });

    test("returns a question, and continues with its answer", async () => {
      const askedTask = await scene.send(userMessage("ask"));
      expect(askedTask.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
      expect(askedTask.status?.message?.parts.map(({ content }) => content?.value)).toEqual([
        "which colour?",
        { options: ["red", "blue"] },
      ]);
      const answered = await scene.send(userMessage("red", { taskId: askedTask.id }));
      expect(answered).toMatchObject({ id: askedTask.id, contextId: askedTask.contextId });
      expect(answered.artifacts[0]?.parts[0]?.content?.value).toBe("red");
    });

    test("returns a request for an authorization, and continues with its answer", async () => {
      const asked = await scene.send(userMessage("authorize"));
      expect(asked.status?.state).toBe(TaskState.TASK_STATE_AUTH_REQUIRED);
      expect(asked.status?.message?.parts[0]?.content?.value).toBe("may I pay 5 EUR?");
      const { status } = await scene.client.getTask({ tenant: "", id: asked.id });
      expect(status?.state).toBe(TaskState.TASK_STATE_AUTH_REQUIRED);
      const answered = await scene.send(userMessage("granted", { taskId: asked.id }));
      expect(answered.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(answered.artifacts[0]?.parts[0]?.content?.value).toBe("granted");
    });

    test("returns a bare message, and a task in a stream", async () => {
      const message = userMessage("reply", { contextId: "small talk" });
      const answer = await scene.client.sendMessage(request(message));
      expect(answer).toMatchObject({ taskId: "", contextId: "small talk", role: Role.ROLE_AGENT });
      expect(answer).toMatchObject({ parts: [{ content: { $case: "text", value: "hi there" } }] });
      const events = await all(scene.client.sendMessageStream(request(userMessage("reply"))));
      const artifact = events.find(({ payload }) => payload?.$case === "artifactUpdate")?.payload?.value;
      expect(artifact).toMatchObject({
        artifact: { parts: [{ content: { $case: "text", value: "hi there" } }] },
      });
    });

    test("returns a failure with its text", async () => {
      const { status } = await scene.send(userMessage("fail"));
      expect(status?.state).toBe(TaskState.TASK_STATE_FAILED);
      expect(status?.message?.parts[0]?.content?.value).toBe("there was no luck");
    });

    test("returns at once on request", async () => {
      const configuration = {
        acceptedOutputModes: [],
        taskPushNotificationConfig: undefined,
        returnImmediately: true,
      };
      const task = await scene.send(userMessage("wait"), { configuration });
      expect(task.status?.state).not.toBe(TaskState.TASK_STATE_COMPLETED);
      const cancelled = await scene.client.cancelTask({ tenant: "", id: task.id, metadata: undefined });
      expect(cancelled.status?.state).toBe(TaskState.TASK_STATE_CANCELED);
      // A repeated cancellation changes nothing.
      expect(await scene.client.cancelTask({ tenant: "", id: task.id, metadata: undefined })).toEqual(
        cancelled,
      );
    });
  });

  describe("streams", () => {
    test("send the task, the result and the end, in this order", async () => {
      const events = await all(scene.client.sendMessageStream(request(userMessage("hello"))));
      const kinds = events.map(({ payload }) => payload?.$case);
      expect(kinds[0]).toBe("task");
      expect(kinds.slice(-2)).toEqual(["artifactUpdate", "statusUpdate"]);
      expect(new Set(kinds.slice(1))).toEqual(new Set(["artifactUpdate", "statusUpdate"]));
      expect(events.at(-1)?.payload?.value).toMatchObject({
        status: { state: TaskState.TASK_STATE_COMPLETED },
      });
    });

    test("are the same for every reader, and a reader that disconnects stops nothing", async () => {
      const stream = scene.client.sendMessageStream(request(userMessage("wait")));
      const first = await stream.next();
      if (first.done === true || first.value.payload?.$case !== "task") throw new Error("no task came first");
      const { id } = first.value.payload.value;
      const subscriptions = [1, 2].map(() => scene.client.resubscribeTask({ tenant: "", id }));
      const snapshots = await Promise.all(subscriptions.map((each) => each.next()));
      expect(snapshots.map(({ value }) => value?.payload)).toMatchObject([
        { $case: "task", value: { id } },
        { $case: "task", value: { id } },
      ]);
      await stream.return(undefined);
      await scene.client.cancelTask({ tenant: "", id, metadata: undefined });
      const [one, other] = await Promise.all(subscriptions.map(all));
      expect(one?.at(-1)).toEqual(other?.at(-1));
      expect(one?.at(-1)?.payload?.value).toMatchObject({
        taskId: id,
        status: { state: TaskState.TASK_STATE_CANCELED },
      });
    });
  });

  test("GetTask returns the task with its result", async () => {
    const sent = await scene.send(userMessage("hello"));
    const task = await scene.client.getTask({ tenant: "", id: sent.id });
    expect(task).toMatchObject({ id: sent.id, contextId: sent.contextId, artifacts: sent.artifacts });
  });
});

describe("a call without an A2A client", () => {
  const scene = new Scene();

  test("a tenant names the agent at the address of all agents", async () => {
    const body = {
      jsonrpc: "2.0",
      id: "one",
      method: "SendMessage",
      params: {
        tenant: "worker",
        message: { messageId: "1", role: "ROLE_USER", parts: [{ text: "hi" }], more: "is ignored" },
      },
    };
    const answer = await scene.platform.post("/a2a", body, { "a2a-version": "1.0" });
    expect(await answer.json()).toMatchObject({
      jsonrpc: "2.0",
      id: "one",
      result: {
        task: { status: { state: "TASK_STATE_COMPLETED" }, artifacts: [{ parts: [{ text: "hi" }] }] },
      },
    });
  });
});
