import { TaskState } from "@a2a-js/sdk";
import { describe, expect, test } from "vitest";
import { introduce } from "../gateway/platform.ts";
import { BINDINGS, Scene, userMessage } from "./scene.ts";

const ALL = {
  tenant: "",
  contextId: "",
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: "",
  pageSize: undefined,
  historyLength: undefined,
  statusTimestampAfter: undefined,
  includeArtifacts: undefined,
};

describe.each(BINDINGS)("ListTasks over %s", (binding) => {
  const scene = new Scene(binding);
  const pages = async (filter: object, pageSize: number) => {
    const tokens = [""];
    const ids: string[][] = [];
    for (const pageToken of tokens) {
      const page = await scene.client.listTasks({ ...ALL, ...filter, pageSize, pageToken });
      ids.push(page.tasks.map(({ id }) => id));
      if (page.nextPageToken !== "") tokens.push(page.nextPageToken);
    }
    return ids;
  };

  test("returns the tasks of a context, the latest status first, page by page", async () => {
    const contextId = "talk";
    const first = await scene.send(userMessage("one", { contextId }));
    const askedTask = await scene.send(userMessage("ask", { contextId }));
    const last = await scene.send(userMessage("three", { contextId }));
    await scene.send(userMessage("elsewhere"));
    expect(await pages({ contextId }, 2)).toEqual([[last.id, askedTask.id], [first.id]]);
    await scene.send(userMessage("blue", { contextId, taskId: askedTask.id }));
    expect(await pages({ contextId }, 3)).toEqual([[askedTask.id, last.id, first.id]]);
    const page = await scene.client.listTasks({ ...ALL, contextId });
    expect([page.pageSize, page.totalSize, page.nextPageToken]).toEqual([50, 3, ""]);
    expect(page.tasks.map(({ artifacts, history }) => [artifacts, history])).toEqual([
      [[], []],
      [[], []],
      [[], []],
    ]);
  });

  test("distinguishes questions for input from requests for an authorization", async () => {
    const contextId = "questions";
    const forInput = await scene.send(userMessage("ask", { contextId }));
    const forAuthorization = await scene.send(userMessage("authorize", { contextId }));
    const listed = async (status: TaskState) => (await pages({ contextId, status }, 5)).flat();
    expect(await listed(TaskState.TASK_STATE_INPUT_REQUIRED)).toEqual([forInput.id]);
    expect(await listed(TaskState.TASK_STATE_AUTH_REQUIRED)).toEqual([forAuthorization.id]);
  });

  test("filters by state and time, and includes artifacts and messages on request", async () => {
    const contextId = "more";
    const failed = await scene.send(userMessage("fail", { contextId }));
    const endedTask = await scene.send(userMessage("hello", { contextId }));
    const status = TaskState.TASK_STATE_FAILED;
    expect(await pages({ contextId, status }, 5)).toEqual([[failed.id]]);
    const statusTimestampAfter = endedTask.status?.timestamp;
    expect((await pages({ contextId, statusTimestampAfter }, 5)).flat()).toContain(endedTask.id);
    expect(await pages({ contextId, statusTimestampAfter: "2999-01-01T00:00:00.000Z" }, 5)).toEqual([[]]);
    const wholeList = await scene.client.listTasks({
      ...ALL,
      contextId,
      includeArtifacts: true,
      historyLength: 1,
    });
    expect(wholeList.tasks[0]).toMatchObject({ artifacts: endedTask.artifacts, history: endedTask.history });
  });

  test("returns the messages of a task, and at most the requested number", async () => {
    const askedTask = await scene.send(userMessage("ask"));
    const answer = userMessage("red", { taskId: askedTask.id });
    const answered = await scene.send(answer);
    const texts = ["ask", "which colour?", "red"];
    const history = (historyLength?: number) =>
      scene.client
        .getTask({ tenant: "", id: askedTask.id, historyLength })
        .then((task) => task.history.map(({ parts }) => parts[0]?.content?.value));
    expect(answered.history.map(({ parts }) => parts[0]?.content?.value)).toEqual(texts);
    expect(await history()).toEqual(texts);
    expect(await history(2)).toEqual(texts.slice(1));
    expect(await history(0)).toEqual([]);
    // The agent's question has the same message id in the status of the earlier answer and in the history.
    expect(answered.history[1]?.messageId).toBe(askedTask.status?.message?.messageId);
  });

  test.each([
    ["a page size of zero", { pageSize: 0 }],
    ["a page that is too large", { pageSize: 101 }],
    ["a token of another list", { pageToken: "bm90aGluZw" }],
    ["a negative length", { historyLength: -1 }],
  ])("refuses %s", async (_, filter) => {
    await expect(scene.client.listTasks({ ...ALL, ...filter })).rejects.toThrow();
  });
});

describe("an empty page", () => {
  const scene = new Scene();

  test("has all required members, and no artifacts", async () => {
    await introduce(scene.platform, "idle");
    const body = { jsonrpc: "2.0", id: 1, method: "ListTasks", params: {} };
    const answer = await scene.platform.post("/a2a/idle", body, { "a2a-version": "1.0" });
    const result = { tasks: [], nextPageToken: "", pageSize: 50, totalSize: 0 };
    expect(await answer.json()).toEqual({ jsonrpc: "2.0", id: 1, result });
  });
});
