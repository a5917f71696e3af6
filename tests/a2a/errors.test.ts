import { describe, expect, test } from "vitest";
import { introduce } from "../gateway/platform.ts";
import { Scene, userMessage } from "./scene.ts";

const scene = new Scene();

const INFO = "type.googleapis.com/google.rpc.ErrorInfo";
const HELLO = { messageId: "1", role: "ROLE_USER", parts: [{ text: "hello" }] };

/** Posts one JSON-RPC call, and returns its error. */
async function refusal(
  method: string,
  params: object,
  headers: Record<string, string> = {},
  agent = "worker",
) {
  const body = { jsonrpc: "2.0", id: 7, method, params };
  const answer = await scene.platform.post(`/a2a/${agent}`, body, { "a2a-version": "1.0", ...headers });
  expect(answer.headers.get("content-type")).toBe("application/json");
  const { id, error } = (await answer.json()) as {
    id: unknown;
    error: { code: number; data: { "@type": string; reason: string; domain: string }[] };
  };
  expect(id).toBe(7);
  const [info] = error.data;
  expect(info).toMatchObject({ "@type": INFO });
  return { code: error.code, reason: info?.reason, domain: info?.domain, data: error.data };
}

const A2A = "a2a-protocol.org";

describe("JSON-RPC errors", () => {
  test("an unknown task", async () => {
    for (const method of ["GetTask", "CancelTask", "SubscribeToTask"]) {
      const error = await refusal(method, { id: "nothing" });
      expect(error).toMatchObject({ code: -32001, reason: "TASK_NOT_FOUND", domain: A2A });
    }
    const message = { ...HELLO, taskId: "nothing" };
    expect(await refusal("SendMessage", { message })).toMatchObject({ code: -32001 });
  });

  test.each<[string, string, object, string, string]>([
    [
      "a status that does not exist",
      "ListTasks",
      { status: "foo" },
      "status",
      "must be one of TASK_STATE_SUBMITTED",
    ],
    [
      "a time that is none",
      "ListTasks",
      { statusTimestampAfter: "yesterday" },
      "status_timestamp_after",
      "RFC 3339",
    ],
    ["a size that is none", "ListTasks", { pageSize: "many" }, "page_size", "expected number"],
    [
      "a role of 0.3",
      "SendMessage",
      { message: { ...HELLO, role: "user" } },
      "message.role",
      "ROLE_USER, ROLE_AGENT",
    ],
  ])("%s is refused, and the field is named", async (_what, method, params, field, description) => {
    const { code, data } = await refusal(method, params);
    expect([code, data[1]]).toEqual([
      -32602,
      expect.objectContaining({
        fieldViolations: [{ field, description: expect.stringContaining(description) }],
      }),
    ]);
  });

  test("another agent's task looks like an unknown task", async () => {
    await introduce(scene.platform, "other");
    const { id } = await scene.send(userMessage("hello"));
    const message = { ...HELLO, taskId: id };
    for (const [method, params] of [
      ["GetTask", { id }],
      ["CancelTask", { id }],
      ["SubscribeToTask", { id }],
      ["SendMessage", { message }],
    ] as const) {
      expect(await refusal(method, params, {}, "other")).toMatchObject({ code: -32001 });
    }
  });

  test("a message to a task that has ended, and a subscription to it", async () => {
    const { id } = await scene.send(userMessage("hello"));
    const unsupported = { code: -32004, reason: "UNSUPPORTED_OPERATION", domain: A2A };
    const message = { ...HELLO, taskId: id };
    expect(await refusal("SendMessage", { message })).toMatchObject(unsupported);
    expect(await refusal("SendStreamingMessage", { message })).toMatchObject(unsupported);
    expect(await refusal("SubscribeToTask", { id })).toMatchObject(unsupported);
    expect(await refusal("CancelTask", { id })).toMatchObject({
      code: -32002,
      reason: "TASK_NOT_CANCELABLE",
    });
  });

  test("a message whose context is not its task's", async () => {
    const { id } = await scene.send(userMessage("ask"));
    const message = { ...HELLO, taskId: id, contextId: "another" };
    const error = await refusal("SendMessage", { message });
    expect(error).toMatchObject({
      code: -32602,
      data: [{}, { fieldViolations: [{ field: "message.context_id" }] }],
    });
  });

  test.each([
    ["no version", ""],
    ["an old version", "0.3"],
    ["a new version", "2.0"],
  ])("%s", async (_, version) => {
    const error = await refusal("GetTask", { id: "x" }, { "a2a-version": version });
    expect(error).toMatchObject({ code: -32009, reason: "VERSION_NOT_SUPPORTED", domain: A2A });
  });

  test("the version may be a query parameter", async () => {
    const body = { jsonrpc: "2.0", id: 1, method: "GetTask", params: { id: "x" } };
    const answer = await scene.platform.post("/a2a/worker?A2A-Version=1.0", body);
    expect(await answer.json()).toMatchObject({ error: { code: -32001 } });
  });

  test.each([
    ["no message", "SendMessage", {}, "message"],
    ["no parts", "SendMessage", { message: { ...HELLO, parts: [] } }, "message.parts"],
    [
      "a part without content",
      "SendMessage",
      { message: { ...HELLO, parts: [{}] } },
      "message.parts[0].content",
    ],
    ["no role", "SendMessage", { message: { ...HELLO, role: undefined } }, "message.role"],
    ["the agent's role", "SendMessage", { message: { ...HELLO, role: "ROLE_AGENT" } }, "message.role"],
    ["no id", "SendMessage", { message: { ...HELLO, messageId: "" } }, "message.message_id"],
    [
      "a long context",
      "SendMessage",
      { message: { ...HELLO, contextId: "x".repeat(129) } },
      "message.context_id",
    ],
    ["another tenant", "SendMessage", { tenant: "other", message: HELLO }, "tenant"],
    ["a negative length", "GetTask", { id: "x", historyLength: -1 }, "history_length"],
    ["a word for a number", "GetTask", { id: "x", historyLength: "many" }, "history_length"],
    ["no task", "GetTask", {}, "id"],
  ])("%s", async (_, method, params, field) => {
    const error = await refusal(method, params);
    expect(error).toMatchObject({ code: -32602, data: [{}, { fieldViolations: [{ field }] }] });
  });

  test("malformed JSON, an unknown method and an unknown agent", async () => {
    const post = async (body: unknown, agent = "worker") => {
      const answer = await scene.platform.post(`/a2a/${agent}`, body, { "a2a-version": "1.0" });
      return answer.json();
    };
    expect(await post("{")).toMatchObject({ id: null, error: { code: -32700, data: [{ "@type": INFO }] } });
    expect(await post([])).toMatchObject({ error: { code: -32600 } });
    const call = { jsonrpc: "2.0", id: 1 };
    expect(await post({ ...call, method: "message/send" })).toMatchObject({ error: { code: -32601 } });
    const sent = { ...call, method: "SendMessage", params: { message: HELLO } };
    expect(await post(sent, "nobody")).toMatchObject({
      error: { code: -32053, data: [{ reason: "AGENT_NOT_FOUND", domain: "depute.dev" }] },
    });
  });

  test("an extended card, where no credentials are needed", async () => {
    expect(await refusal("GetExtendedAgentCard", {})).toMatchObject({ code: -32004 });
  });
});
