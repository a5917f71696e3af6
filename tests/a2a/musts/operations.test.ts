import { type StreamResponse, TaskState } from "@a2a-js/sdk";
import { describe, expect } from "vitest";
import { Receiver } from "../receiver.ts";
import { all, BINDINGS, FILES, request, Scene, userMessage } from "../scene.ts";
import { begin, config } from "../webhook-messages.ts";
import { HOSTS, must } from "./must.ts";

const RETURN_AT_ONCE = {
  acceptedOutputModes: [],
  taskPushNotificationConfig: undefined,
  returnImmediately: true,
};
const LIST = {
  tenant: "",
  contextId: "",
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: "",
  pageSize: undefined,
  historyLength: undefined,
  statusTimestampAfter: undefined,
  includeArtifacts: undefined,
};

const kindsOf = (events: readonly StreamResponse[]) => events.map(({ payload }) => payload?.$case);

describe.each(BINDINGS)("over %s", (binding) => {
  const receiver = new Receiver();
  const scene = new Scene(binding, HOSTS);
  const named = (id: string) => ({ tenant: "", id });
  const cancel = (id: string) => scene.client.cancelTask({ ...named(id), metadata: undefined });
  const beginWait = () => scene.send(userMessage("wait"), { configuration: RETURN_AT_ONCE });

  must([18, 19, 20], "SendMessage waits for the end, and returns the task with all artifacts", async () => {
    const task = await scene.send(userMessage("files"));
    expect(task.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(task.artifacts.map(({ artifactId }) => artifactId)).toEqual(
      FILES.map(({ artifactId }) => artifactId),
    );
    const asked = await scene.send(userMessage("ask"));
    expect(asked.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    await cancel(asked.id);
  });

  must([21], "return_immediately returns the task before its end", async () => {
    const { id, status } = await beginWait();
    expect([TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING]).toContain(status?.state);
    await cancel(id);
  });

  must([22], "a history never has more messages than requested", async () => {
    const { id } = await scene.send(userMessage("ask"));
    await scene.send(userMessage("red", { taskId: id }));
    for (const historyLength of [0, 1, 2, 3]) {
      const { history } = await scene.client.getTask({ ...named(id), historyLength });
      expect(history.length).toBe(historyLength);
    }
  });

  must([23, 25], "a new task has its own id and context", async () => {
    const [one, other] = await Promise.all([scene.send(userMessage("a")), scene.send(userMessage("b"))]);
    for (const member of ["id", "contextId"] as const) {
      expect(one[member]).not.toBe("");
      expect(one[member]).not.toBe(other[member]);
    }
  });

  must([24], "a context id is kept, or refused where it is too long, and never replaced", async () => {
    expect((await scene.send(userMessage("a", { contextId: "my talk" }))).contextId).toBe("my talk");
    await expect(scene.send(userMessage("a", { contextId: "x".repeat(1_000) }))).rejects.toThrow();
  });

  must([26], "a message cannot choose the id of a new task", async () => {
    const sent = scene.send(userMessage("a", { taskId: crypto.randomUUID() }));
    await expect(sent).rejects.toMatchObject({ reason: "TASK_NOT_FOUND" });
  });

  must([27, 28], "a message to a task is in its context, and cannot name another one", async () => {
    const { id, contextId } = await scene.send(userMessage("ask"));
    const other = scene.send(userMessage("red", { taskId: id, contextId: "another" }));
    await expect(other).rejects.toThrow();
    const answered = await scene.send(userMessage("red", { taskId: id }));
    expect([answered.id, answered.contextId]).toEqual([id, contextId]);
  });

  must([29, 31], "a stream begins with the task, and ends with its terminal state", async () => {
    const events = await all(scene.client.sendMessageStream(request(userMessage("hello"))));
    const [first, ...updates] = kindsOf(events);
    expect(first).toBe("task");
    expect(updates.length).toBeGreaterThan(0);
    for (const kind of updates) expect(["statusUpdate", "artifactUpdate"]).toContain(kind);
    expect(events.at(-1)?.payload?.value).toMatchObject({
      status: { state: TaskState.TASK_STATE_COMPLETED },
    });
  });

  must(
    [32, 33, 34, 35, 36],
    "each subscriber gets the task first, then the same events in order, and may leave alone",
    async () => {
      const { id } = await beginWait();
      const streams = [1, 2, 3].map(() => scene.client.resubscribeTask(named(id)));
      const firsts = await Promise.all(streams.map((stream) => stream.next()));
      for (const { value } of firsts) expect(value?.payload).toMatchObject({ $case: "task", value: { id } });
      const [leaving, ...staying] = streams;
      await leaving?.return?.(undefined);
      await cancel(id);
      const [one = [], other = []] = await Promise.all(staying.map((stream) => all(stream)));
      // A subscriber that opened its stream later gets the earlier events in its first element.
      const common = Math.min(one.length, other.length);
      expect(common).toBeGreaterThan(0);
      expect(one.slice(-common)).toEqual(other.slice(-common));
      expect(one.at(-1)?.payload?.value).toMatchObject({
        status: { state: TaskState.TASK_STATE_CANCELED },
      });
    },
  );

  must([38, 39, 40], "an ended task accepts no message and no subscription, and never changes", async () => {
    const { id } = await scene.send(userMessage("hello"));
    const before = await scene.client.getTask(named(id));
    const more = request(userMessage("more", { taskId: id }));
    for (const ask of [
      () => scene.client.sendMessage(more),
      () => scene.client.sendMessageStream(more).next(),
      () => scene.client.resubscribeTask(named(id)).next(),
    ]) {
      await expect(ask()).rejects.toMatchObject({ reason: "UNSUPPORTED_OPERATION" });
    }
    expect(await scene.client.getTask(named(id))).toEqual(before);
  });

  must([46, 47], "a list has the latest status first, and a cursor keeps its place", async () => {
    const contextId = crypto.randomUUID();
    const ids: string[] = [];
    for (const text of ["a", "b", "c"]) {
      ids.push((await scene.send(userMessage(text, { contextId }))).id);
    }
    const first = await scene.client.listTasks({ ...LIST, contextId, pageSize: 2 });
    expect(first.tasks.map(({ id }) => id)).toEqual([ids[2], ids[1]]);
    // A task that is created between two reads moves no entry to another page.
    await scene.send(userMessage("d", { contextId }));
    const { nextPageToken: pageToken } = first;
    const second = await scene.client.listTasks({ ...LIST, contextId, pageSize: 2, pageToken });
    expect(second.tasks.map(({ id }) => id)).toEqual([ids[0]]);
  });

  must([50, 51, 52, 53], "a webhook is created, read, listed, and deleted for good", async () => {
    const { id: taskId } = await beginWait();
    const { client } = scene;
    const made = await client.createTaskPushNotificationConfig(config(taskId, receiver.url("/kept")));
    const one = { tenant: "", taskId, id: made.id };
    expect(await client.getTaskPushNotificationConfig(one)).toMatchObject({ url: receiver.url("/kept") });
    const list = { tenant: "", taskId, pageSize: 0, pageToken: "" };
    const { configs } = await client.listTaskPushNotificationConfig(list);
    expect(configs.map(({ id }) => id)).toEqual([made.id]);
    await client.deleteTaskPushNotificationConfig(one);
    await client.deleteTaskPushNotificationConfig(one);
    await expect(client.getTaskPushNotificationConfig(one)).rejects.toMatchObject({
      reason: "TASK_NOT_FOUND",
    });
    const unknown = client.deleteTaskPushNotificationConfig({ ...one, taskId: "nothing" });
    await expect(unknown).rejects.toMatchObject({ reason: "TASK_NOT_FOUND" });
    await cancel(taskId);
  });

  must([54, 55], "each delivery of a webhook is attempted, with the configured credentials", async () => {
    const authentication = { scheme: "Bearer", credentials: "sesame-2" };
    await begin(scene, "hello", receiver.url("/delivered"), { authentication });
    await expect.poll(() => receiver.seen("/delivered").at(-1)).toBe("COMPLETED");
    for (const { headers } of receiver.at("/delivered")) {
      expect(headers.authorization).toBe("Bearer sesame-2");
    }
  });

  must([62], "an artifact has parts, and its id is unique in its task", async () => {
    for (const text of ["hello", "data", "files"]) {
      const { artifacts } = await scene.send(userMessage(text));
      expect(new Set(artifacts.map(({ artifactId }) => artifactId)).size).toBe(artifacts.length);
      for (const { parts } of artifacts) expect(parts.length).toBeGreaterThan(0);
    }
  });

  must([67], "an invalid message is refused before a task begins", async () => {
    const contextId = crypto.randomUUID();
    await expect(scene.send(userMessage([], { contextId }))).rejects.toThrow();
    expect((await scene.client.listTasks({ ...LIST, contextId })).tasks).toEqual([]);
  });

  must([73, 86], "the version is read from the service parameters, and only 1.0 is served", async () => {
    const tenant = binding === "GRPC" ? "worker" : "";
    const { id } = await scene.send(userMessage("hello"));
    const read = (version: string) =>
      scene.client.transport.getTask(
        { tenant, id },
        version === "" ? {} : { serviceParameters: { "A2A-Version": version } },
      );
    expect(await read("1.0")).toMatchObject({ id });
    for (const version of ["", "0.3", "2.0"]) {
      await expect(read(version)).rejects.toMatchObject({ reason: "VERSION_NOT_SUPPORTED" });
    }
  });
});
