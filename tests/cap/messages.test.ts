import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { refusal } from "@depute/service/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Cast, example, keyOf, secretOf, startCast } from "./cast.ts";

let cast: Cast;
beforeAll(async () => {
  cast = await startCast();
});
afterAll(() => cast.stop());

const REQUEST = {
  type: "message",
  task_id: "M1",
  sender_id: "user",
  recipient_id: "orchestrator",
  content: "analyze last quarter’s sales trends",
};

test("a message of the user is in the orchestrator's inbox, with the server's time and the claimed one", async () => {
  const [user, orchestrator] = [cast.as("user"), cast.as("orchestrator")];
  const sent = await user.send({ ...REQUEST, timestamp: "2020-01-01T00:00:00Z" });
  expect(sent).toMatchObject({ status: 201, body: { task_id: "M1", effect: "said" } });
  const { messages, last_sequence } = await orchestrator.inbox();
  expect(last_sequence).toBe(messages.length);
  expect(messages.at(-1)).toMatchObject({
    message_id: sent.body.message_id,
    origin: "sender",
    acknowledged: false,
    claimed_timestamp: "2020-01-01T00:00:00Z",
    message: { ...REQUEST, timestamp: sent.body.timestamp },
  });
  expect(Math.abs(Date.parse(sent.body.timestamp) - Date.now())).toBeLessThan(60_000);
});

test("an inbox is acknowledged, and read from a cursor", async () => {
  const [user, orchestrator] = [cast.as("user"), cast.as("orchestrator")];
  for (const content of ["one", "two", "three"]) await user.send({ ...REQUEST, content });
  const { last_sequence: last } = await orchestrator.inbox();
  const after = await orchestrator.inbox(`?after=${last - 2}`);
  expect(after.messages.map(({ message }: { message: { content: string } }) => message.content)).toEqual([
    "two",
    "three",
  ]);
  expect(await orchestrator.inbox(`?after=${last - 3}&limit=2`)).toMatchObject({ next_after: last - 1 });
  expect(await orchestrator.acknowledge(last)).toMatchObject({ status: 200, body: { unacknowledged: 0 } });
  expect((await orchestrator.inbox("?unacknowledged=true")).messages).toEqual([]);
  expect(await orchestrator.acknowledge(last + 1)).toMatchObject({
    status: 400,
    body: { error_code: 400, violations: [{ path: "/up_to" }] },
  });
  expect(await orchestrator.acknowledge(0)).toMatchObject({
    status: 400,
    body: { error_message: "up_to or sequences is required" },
  });
  expect(await orchestrator.inbox("?unacknowledged=yes")).toMatchObject({
    error_code: 400,
    error_message: "unacknowledged: must be true or false",
  });
});

test("a repeated idempotency key is the same message", async () => {
  const user = cast.as("user");
  const first = await user.send(REQUEST, "key-1");
  expect(await user.send(REQUEST, "key-1")).toEqual(first);
  expect(await user.send({ ...REQUEST, content: "other" }, "key-1")).toMatchObject({
    status: 409,
    body: { type: "error_response", reason: "REQUEST_ID_REUSED" },
  });
});

test("events of an inbox continue after the last received one, without a gap", async () => {
  const [user, orchestrator] = [cast.as("user"), cast.as("orchestrator")];
  const { last_sequence: last } = await orchestrator.inbox();
  await user.send({ ...REQUEST, content: "before" });
  const controller = new AbortController();
  const response = await fetch(`${cast.url}/cap/inbox/orchestrator`, {
    headers: {
      accept: "text/event-stream",
      authorization: `Bearer ${secretOf("orchestrator")}`,
      "last-event-id": String(last),
    },
    signal: controller.signal,
  });
  const events = eventsOf(response);
  expect(await events.next()).toMatchObject({
    value: { id: last + 1, data: { message: { content: "before" } } },
  });
  await user.send({ ...REQUEST, content: "after" });
  expect(await events.next()).toMatchObject({
    value: { id: last + 2, data: { message: { content: "after" } } },
  });
  controller.abort();
});

async function* eventsOf(response: Response) {
  let text = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += new TextDecoder().decode(chunk);
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const frame = Object.fromEntries(
        text
          .slice(0, end)
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      text = text.slice(end + 2);
      yield { id: Number(frame.id), event: frame.event, data: JSON.parse(frame.data ?? "") };
    }
  }
}

test("gRPC carries the same messages, and a stream of an inbox", async () => {
  const messages = createClient(MessageService, cast.platform.transport);
  const asPlayer = (id: string) => ({ headers: { authorization: `Bearer ${secretOf(id)}` } });
  const value = { taskId: "M1", senderId: "orchestrator", recipientId: "user", content: "which quarter?" };
  const message = create(CapMessageSchema, { kind: { case: "message", value } }) as CapMessage;
  const sent = await messages.sendMessage({ requestId: "g1", message }, asPlayer("orchestrator"));
  expect(sent).toMatchObject({ effect: MessageEffect.SAID, engineTaskId: "" });
  const { lastSequence } = await messages.listInbox({ agentId: "user" }, asPlayer("user"));
  const stop = new AbortController();
  const watched = messages.watchInbox(
    { agentId: "user", afterSequence: lastSequence - 1n },
    { ...asPlayer("user"), signal: stop.signal },
  );
  for await (const { message: entry } of watched) {
    expect(entry).toMatchObject({ sequence: lastSequence, messageId: sent.messageId });
    break;
  }
  stop.abort();
  const forged = messages.sendMessage({ message }, asPlayer("user"));
  expect(await refusal(forged)).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
    metadata: { error_code: "403" },
  });
});

test("protobuf messages that no document can express are refused", async () => {
  const messages = createClient(MessageService, cast.platform.transport);
  const value = {
    taskId: "M1",
    senderId: "user",
    recipientId: "orchestrator",
    content: "",
    attachments: {
      values: [
        {
          kind: {
            case: "pythonObject" as const,
            value: { object: fromJson(ValueSchema, {}), extraMembers: { type: "file" } },
          },
        },
      ],
    },
  };
  const sending = messages.sendMessage(
    { message: { kind: { case: "message", value } } },
    { headers: { authorization: `Bearer ${secretOf("user")}` } },
  );
  expect(await refusal(sending)).toMatchObject({ reason: "INVALID_REQUEST" });
});

test.each<[string, string, object | string, number]>([
  ["an unknown credential", "nobody", REQUEST, 401],
  ["a sender id of another participant", "stranger-1", REQUEST, 403],
  ["an unknown recipient", "user", { ...REQUEST, recipient_id: "nobody-1" }, 404],
  [
    "a child task in a lineage of other participants",
    "stranger-1",
    { ...REQUEST, task_id: "M1.1", sender_id: "stranger-1" },
    404,
  ],
  ["an unknown task", "user", { ...REQUEST, task_id: "M1.7" }, 404],
  ["a malformed task id", "user", { ...REQUEST, task_id: "M1..2" }, 400],
  ["an unknown type", "user", { ...REQUEST, type: "gossip" }, 400],
  ["a text beyond the limit", "user", { ...REQUEST, content: "x".repeat(20_000) }, 400],
  ["a message to its own sender", "user", { ...REQUEST, recipient_id: "user" }, 403],
  [
    "a tool result without a bound tool",
    "user",
    { ...REQUEST, attachments: [{ type: "tool_call_result", server_id: "S", tool: "t", result: 1 }] },
    403,
  ],
])("refuses %s", async (_name, id, message, code) => {
  const answer = await cast.as(id).send(message as never);
  expect(answer).toMatchObject({ status: code, body: { type: "error_response", error_code: code } });
});

test("the text's broken example is refused with the place of the fault", async () => {
  // The specification's own example has these faults: no comma after `inquiry`, and a surplus comma after the
  // attachment.
  const broken = `{
"type":"oversight_inquiry",
"task_id":"T1.1.1",
"sender_id":"qa-1",
"recipient_id":"analyst-1",
"inquiry":"please confirm data source and any filters applied."
"attachments":[
{"type":"file","path":"/tmp/qa_eda_report_findings_with_explanations.md"},
]
}`;
  const answer = await cast.as("qa-1").send(broken);
  const offset = broken.indexOf('"attachments"');
  expect(answer).toMatchObject({
    status: 400,
    body: {
      type: "error_response",
      error_code: 400,
      reason: "MALFORMED_JSON",
      position: { offset, line: 7, column: 1 },
    },
  });
  const mended = broken.replace('applied."', 'applied.",');
  expect(await cast.as("qa-1").send(mended)).toMatchObject({ body: { position: { line: 9, column: 1 } } });
});

test("manifests are returned as they were sent", async () => {
  for (const id of ["pm-1", "analyst-1", "qa-1"]) {
    const { status, body } = await cast.as(id).ask("GET", `/cap/agents/${id}`);
    expect({ status, body }).toEqual({ status: 200, body: example(`manifest-${id}`) });
  }
  const { body } = await cast.as("pm-1").ask("GET", "/cap/agents");
  expect(body.agents.map(({ id }: { id: string }) => id)).toEqual([
    "analyst-1",
    "pm-1",
    "qa-1",
    "stranger-1",
  ]);
});

test("a PUT with a key needs no `principal`: it updates that key's agent", async () => {
  const pm = cast.as("pm-1");
  const put = (by: string, id: string, body = example("manifest-pm-1")) =>
    cast.as(by).ask("PUT", `/cap/agents/${id}`, body);
  expect(await put("pm-1", "pm-1:b")).toMatchObject({ status: 201 });
  for (const id of ["pm-1", "pm-1:b"]) {
    const { body } = await pm.ask("POST", "/depute.registry.v1.AgentService/GetAgent", { agent_id: id });
    expect(body.agent).toMatchObject({ id, principal: keyOf("pm-1") });
  }
  // A repeated request changes nothing. A caller with another key does not get the agent by repeating the request.
  expect(await put("pm-1", "pm-1")).toMatchObject({ status: 201 });
  expect(await put("qa-1", "pm-1")).toMatchObject({ status: 403 });
});

test.each<[string, object]>([
  ["allowed_agents", { allowed_agents: undefined }],
  ["overseer", { overseer: 5 }],
  ["delegate_rules", { delegate_rules: { "pm-1": { when_to_delegate: "Always." } } }],
  ["delegate_rules", { delegate_rules: { "a b": { when_to_delegate: "Always." } } }],
  ["id", { id: "no spaces" }],
  ["mcp_bindings", { mcp_bindings: [{ server_id: "S" }] }],
])("a manifest is refused with a wrong %s", async (_member, change) => {
  const manifest = { ...example("manifest-qa-1"), ...change };
  const { status, body } = await cast.as("qa-1").ask("PUT", "/cap/agents/qa-1", manifest);
  expect({ status, code: body.error_code }).toEqual({ status: 400, code: 400 });
});

describe("an agent begins a conversation", () => {
  const from = (sender_id: string, recipient_id: string, task_id: string, more: object = {}) => ({
    ...{ type: "message", task_id, sender_id, recipient_id, content: `from ${sender_id}` },
    ...more,
  });

  test.each(["user", "orchestrator", "pm-1"])("with %s, and gets an answer", async (other) => {
    const id = `N-${other}`;
    const sent = await cast.as("stranger-1").send(from("stranger-1", other, id));
    expect(sent).toMatchObject({ status: 201, body: { effect: "said" } });
    expect((await cast.as(other).inbox("?limit=1000")).messages.at(-1)).toMatchObject({
      message: { task_id: id, sender_id: "stranger-1" },
    });
    expect(await cast.as(other).send(from(other, "stranger-1", id))).toMatchObject({ status: 201 });
    expect((await cast.as("stranger-1").inbox("?limit=1000")).messages.at(-1)).toMatchObject({
      message: { task_id: id, sender_id: other },
    });
  });

  test("under the id of other participants' task, and learns nothing of the task", async () => {
    const [stranger, orchestrator] = [cast.as("stranger-1"), cast.as("orchestrator")];
    const notice = { ...example("example-01-delegation-to-pm"), task_id: "N7" };
    const { engine_task_id } = (await orchestrator.send(notice)).body;
    expect(engine_task_id).not.toBe("");
    const members = ["effect", "message_id", "task_id", "timestamp"];
    for (const id of ["N7", "N8"]) {
      const sent = await stranger.send(from("stranger-1", "qa-1", id));
      expect({ ...sent, body: Object.keys(sent.body).sort() }).toEqual({ status: 201, body: members });
      const [entry] = (await cast.as("qa-1").inbox("?limit=1000")).messages.slice(-1);
      expect([entry.message.task_id, entry.engine_task_id]).toEqual([id, undefined]);
      expect(await cast.as("qa-1").send(from("qa-1", "stranger-1", id))).toMatchObject({ status: 201 });
      for (const [path, status] of [
        [`/cap/tasks/${id}`, 404],
        [`/cap/tasks/${id}/conversations/stranger-1`, 200],
      ] as const) {
        expect(await stranger.ask("GET", path)).toMatchObject({ status });
      }
      const part = from("stranger-1", "pm-1", `${id}.1`);
      expect(await stranger.send(part)).toMatchObject({ status: 404 });
    }
    // Every participant of the lineage sees the message.
    expect((await orchestrator.lineage("N7")).messages).toMatchObject([
      { type: "delegation_notice" },
      { sender_id: "stranger-1", recipient_id: "qa-1", effect: "said" },
      { sender_id: "qa-1", recipient_id: "stranger-1", effect: "said" },
      { sender_id: "stranger-1", recipient_id: "pm-1", effect: "refused", error_code: 404 },
    ]);
    // An answer of the task's holder makes the stranger a participant of the lineage.
    expect(await cast.as("pm-1").send(from("pm-1", "stranger-1", "N7"))).toMatchObject({
      status: 201,
      body: { engine_task_id },
    });
    const again = await stranger.send(from("stranger-1", "pm-1", "N7"));
    expect(again).toMatchObject({ status: 201, body: { engine_task_id } });
  });

  test("only with results of its own tools", async () => {
    const results = [{ type: "tool_call_result", server_id: "DocsServer", tool: "read_file", result: "N9" }];
    const pm = cast.as("pm-1");
    await cast.as("orchestrator").send({ ...example("example-01-delegation-to-pm"), task_id: "N9" });
    expect(await pm.send(from("pm-1", "user", "N9", { attachments: results }))).toMatchObject({
      status: 201,
    });
    const guess = from("stranger-1", "pm-1", "N9", { attachments: results });
    expect(await cast.as("stranger-1").send(guess)).toMatchObject({
      status: 403,
      body: { metadata: { rule: "tool_result" } },
    });
  });
});
