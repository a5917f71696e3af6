import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect } from "vitest";
import type { Json } from "../../gateway/platform.ts";
import { BINDINGS, Scene, userMessage } from "../scene.ts";
import { call, HELLO, must, VERSION } from "./must.ts";

const INFO = "type.googleapis.com/google.rpc.ErrorInfo";

describe("the bindings", () => {
  const scene = new Scene();

  must([57, 85], "show one task equally", async () => {
    const { id } = await scene.send(userMessage("files"));
    const { url } = scene.platform;
    const { body } = await call(scene.platform, "GetTask", { id });
    const http: Json = await (await fetch(`${url}/a2a/worker/tasks/${id}`, { headers: VERSION })).json();
    expect(http).toEqual(body.result);
    const { client } = scene;
    const clients = await Promise.all(BINDINGS.map((each) => scene.connectOver(each)));
    const tasks = await Promise.all(clients.map((each) => each.getTask({ tenant: "", id })));
    for (const task of tasks) expect(task).toEqual(await client.getTask({ tenant: "", id }));
  });

  must([58, 59, 60], "have camelCase names, enum names, times in UTC, and required members", async () => {
    const { body } = await call(scene.platform, "SendMessage", { message: HELLO });
    const { task } = body.result;
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.status.timestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z$/);
    const names: string[] = [];
    JSON.stringify(body, (name, value) => {
      names.push(name);
      return value;
    });
    expect(names.filter((name) => /_|^[A-Z]/.test(name))).toEqual([]);
    expect(task).toMatchObject({ id: expect.any(String), contextId: expect.any(String) });
    expect(task.history[0].role).toBe("ROLE_USER");
  });

  must([48, 49], "omit the artifacts of a list, and show the token of its last page", async () => {
    const { body } = await call(scene.platform, "ListTasks", {});
    expect(body.result.nextPageToken).toBe("");
    expect(body.result.tasks.length).toBeGreaterThan(0);
    for (const task of body.result.tasks) expect(task).not.toHaveProperty("artifacts");
  });

  must([61], "never read the address of a part, and refuse text that is not UTF-8", async () => {
    const read: string[] = [];
    const server = createServer(({ url = "" }, response) => {
      read.push(url);
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`;
    const { body } = await call(scene.platform, "SendMessage", { message: { ...HELLO, parts: [{ url }] } });
    expect(body.result.task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(read).toEqual([]);
    server.close();
    const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ListTasks", params: { contextId: "?" } });
    const bytes = Buffer.from(text);
    bytes[bytes.indexOf("?")] = 0xff;
    const headers = { ...VERSION, "content-type": "application/json" };
    const answer = await fetch(`${scene.platform.url}/a2a/worker`, { method: "POST", headers, body: bytes });
    expect(await answer.json()).toMatchObject({ error: { code: -32700 } });
  });

  must([63, 64, 71], "give each error a code, a message, and details with a type", async () => {
    const { body: ended } = await call(scene.platform, "SendMessage", { message: HELLO });
    const { id } = ended.result.task;
    const { url } = scene.platform;
    for (const [method, params, reason, code, http] of [
      ["GetTask", { id: "nothing" }, "TASK_NOT_FOUND", -32001, 404],
      ["CancelTask", { id }, "TASK_NOT_CANCELABLE", -32002, 400],
      ["ListTaskPushNotificationConfigs", { taskId: id }, "PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, 400],
      ["SubscribeToTask", { id }, "UNSUPPORTED_OPERATION", -32004, 400],
    ] as const) {
      const { body } = await call(scene.platform, method, params);
      expect(body.error).toMatchObject({ code, message: expect.stringMatching(/./) });
      expect(body.error.data[0]).toMatchObject({ "@type": INFO, reason, domain: "a2a-protocol.org" });
      for (const detail of body.error.data) expect(detail).toHaveProperty("@type");
      const path = { GetTask: "nothing", CancelTask: `${id}:cancel`, SubscribeToTask: `${id}:subscribe` };
      const tail = method in path ? path[method as keyof typeof path] : `${id}/pushNotificationConfigs`;
      const verb = method === "CancelTask" ? "POST" : "GET";
      const answer = await fetch(`${url}/a2a/worker/tasks/${tail}`, { method: verb, headers: VERSION });
      expect([method, answer.status]).toEqual([method, http]);
      const { error }: Json = await answer.json();
      expect(error.details[0]).toMatchObject({ "@type": INFO, reason });
    }
  });

  must([68], "refuse all calls about webhooks if the card declares none", async () => {
    const one = { taskId: "x", id: "1" };
    for (const [method, params] of [
      ["CreateTaskPushNotificationConfig", { taskId: "x", url: "https://example.com" }],
      ["GetTaskPushNotificationConfig", one],
      ["ListTaskPushNotificationConfigs", { taskId: "x" }],
      ["DeleteTaskPushNotificationConfig", one],
    ] as const) {
      const { body } = await call(scene.platform, method, params);
      expect([method, body.error.code]).toEqual([method, -32003]);
    }
  });

  must([70], "refuse the extended card if the card declares none", async () => {
    const { body } = await call(scene.platform, "GetExtendedAgentCard", {});
    expect(body.error).toMatchObject({ code: -32004, data: [{ reason: "UNSUPPORTED_OPERATION" }] });
  });

  must([83], "refuse a malformed parameter of an extension", async () => {
    const { body } = await call(scene.platform, "SendMessage", {
      message: { ...HELLO, parts: [{ text: "wait" }] },
      configuration: { returnImmediately: true },
    });
    const { id } = body.result.task;
    const { body: refused } = await call(
      scene.platform,
      "SubscribeToTask",
      { id },
      {
        "a2a-extensions": "https://depute.dev/a2a/extensions/resumable-streams/v1",
        "a2a-after-sequence": "many",
      },
    );
    expect(refused.error).toMatchObject({ code: -32602 });
    await call(scene.platform, "CancelTask", { id });
  });

  must([87], "follow JSON-RPC 2.0: the answer has the id, with either a result or an error", async () => {
    const { body: good } = await call(scene.platform, "ListTasks", {});
    expect(Object.keys(good).sort()).toEqual(["id", "jsonrpc", "result"]);
    const { body: bad } = await call(scene.platform, "Nothing", {});
    expect(Object.keys(bad).sort()).toEqual(["error", "id", "jsonrpc"]);
    expect([good.id, bad.id, bad.error.code]).toEqual(["call-1", "call-1", -32601]);
  });

  must([88], "read the input of GET from the query, by camelCase names", async () => {
    const contextId = "a talk & more";
    await scene.send(userMessage("one", { contextId }));
    const { url } = scene.platform;
    const query = new URLSearchParams({
      contextId,
      status: "TASK_STATE_COMPLETED",
      pageSize: "1",
      includeArtifacts: "true",
    });
    const answer = await fetch(`${url}/a2a/worker/tasks?${query}`, { headers: VERSION });
    expect(await answer.json()).toMatchObject({
      pageSize: 1,
      totalSize: 1,
      tasks: [{ contextId, artifacts: [{ artifactId: "result" }] }],
    });
  });
});
