import { describe, expect, test } from "vitest";
import { BINDINGS, request, Scene, userMessage } from "./scene.ts";

const A2A = "a2a-protocol.org";
const INFO = "type.googleapis.com/google.rpc.ErrorInfo";

describe.each(BINDINGS)("an official client over %s", (binding) => {
  const scene = new Scene(binding);

  test("uses its binding", () => {
    expect(scene.client.transport.protocolName).toBe(binding);
  });

  test("gets an error for an unknown task", async () => {
    const { client } = scene;
    const unknown = { tenant: "", id: "nothing" };
    for (const ask of [
      () => client.getTask(unknown),
      () => client.cancelTask({ ...unknown, metadata: undefined }),
      () => client.resubscribeTask(unknown).next(),
      () => client.sendMessage(request(userMessage("hello", { taskId: "nothing" }))),
    ]) {
      await expect(ask()).rejects.toMatchObject({ reason: "TASK_NOT_FOUND" });
    }
  });

  test("gets an error for an ended task", async () => {
    const { client } = scene;
    const { id } = await scene.send(userMessage("hello"));
    const message = request(userMessage("more", { taskId: id }));
    await expect(client.cancelTask({ tenant: "", id, metadata: undefined })).rejects.toMatchObject({
      reason: "TASK_NOT_CANCELABLE",
    });
    for (const ask of [
      () => client.sendMessage(message),
      () => client.sendMessageStream(message).next(),
      () => client.resubscribeTask({ tenant: "", id }).next(),
    ]) {
      await expect(ask()).rejects.toMatchObject({ reason: "UNSUPPORTED_OPERATION" });
    }
  });

  test("gets an error for webhooks if the card does not declare them", async () => {
    const { transport } = scene.client;
    const config = {
      tenant: binding === "GRPC" ? "worker" : "",
      id: "",
      taskId: "x",
      url: "https://example.com",
      token: "",
      authentication: undefined,
    };
    const options = { serviceParameters: { "A2A-Version": "1.0" } };
    for (const ask of [
      () => transport.createTaskPushNotificationConfig(config, options),
      () => transport.getTaskPushNotificationConfig({ ...config, id: "1" }, options),
      () => transport.deleteTaskPushNotificationConfig({ ...config, id: "1" }, options),
    ]) {
      await expect(ask()).rejects.toMatchObject({ reason: "PUSH_NOTIFICATION_NOT_SUPPORTED" });
    }
  });

  test("gets an error for an unsupported version", async () => {
    const tenant = binding === "GRPC" ? "worker" : "";
    const answer = scene.client.transport.getTask({ tenant, id: "x" });
    await expect(answer).rejects.toMatchObject({ reason: "VERSION_NOT_SUPPORTED" });
  });
});

describe("HTTP+JSON errors", () => {
  const scene = new Scene();
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${scene.platform.url}/a2a/worker/${path}`, {
      ...init,
      headers: { "a2a-version": "1.0", "content-type": "application/a2a+json", ...init.headers },
    });
  const post = (path: string, body: unknown) => ask(path, { method: "POST", body: JSON.stringify(body) });
  const hello = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };

  test("have google.rpc.Status under `error`, and the media type of A2A", async () => {
    const answer = await ask("tasks/nothing");
    expect(answer.status).toBe(404);
    expect(answer.headers.get("content-type")).toBe("application/a2a+json");
    expect(await answer.json()).toEqual({
      error: {
        code: 404,
        status: "NOT_FOUND",
        message: "the task does not exist, or the caller may not see it",
        details: [{ "@type": INFO, reason: "TASK_NOT_FOUND", domain: A2A, metadata: { task: "nothing" } }],
      },
    });
  });

  test.each([
    ["no message", "message:send", {}, "message"],
    ["no parts", "message:stream", { message: { ...hello, parts: [] } }, "message.parts"],
    ["another tenant", "message:send", { tenant: "other", message: hello }, "tenant"],
    ["an array", "message:send", [], "message"],
  ])("%s", async (_, path, body, field) => {
    const answer = await post(path, body);
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      error: { status: "INVALID_ARGUMENT", details: [{}, { fieldViolations: [{ field }] }] },
    });
  });

  test.each([
    ["a length that is no number", "tasks/x?historyLength=many", 400, "INVALID_ARGUMENT"],
    ["an unknown parameter", "tasks/x?nonsense=1", 400, "INVALID_ARGUMENT"],
    ["an unknown path", "nothing", 404, "UNIMPLEMENTED"],
    ["another method", "message:send", 405, "UNIMPLEMENTED"],
  ])("%s", async (_, path, status, name) => {
    const answer = await ask(path);
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ error: { code: status, status: name } });
  });

  test("an older client may use application/json", async () => {
    const answer = await post("message:send", { message: hello });
    expect(await answer.json()).toMatchObject({ task: { artifacts: [{ parts: [{ text: "hello" }] }] } });
    const headers = { "content-type": "application/json", accept: "application/json" };
    const plain = await ask("message:send", {
      method: "POST",
      body: JSON.stringify({ message: hello }),
      headers,
    });
    expect([plain.status, plain.headers.get("content-type")]).toEqual([200, "application/json"]);
    await plain.arrayBuffer();
  });
});
