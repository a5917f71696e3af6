import { create, fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { type CapMessage, CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import { MessageEffect, MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { refusal } from "@depute/service/testing";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cast, example, secretOf, startCast } from "./cast.ts";

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

test("a message of the user's is in the orchestrator's inbox, with the server's time and the claimed one", async () => {
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
  expect(await orchestrator.acknowledge(last + 1)).toMatchObject({ status: 400, body: { error_code: 400 } });
});

test("the same idempotency key is the same message", async () => {
  const user = cast.as("user");
  const first = await user.send(REQUEST, "key-1");
  expect(await user.send(REQUEST, "key-1")).toEqual(first);
  expect(await user.send({ ...REQUEST, content: "other" }, "key-1")).toMatchObject({
    status: 409,
    body: { type: "error_response", reason: "REQUEST_ID_REUSED" },
  });
});

test("events of an inbox come from the last one seen, without a gap", async () => {
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
  const as = (id: string) => ({ headers: { authorization: `Bearer ${secretOf(id)}` } });
  const value = { taskId: "M1", senderId: "orchestrator", recipientId: "user", content: "which quarter?" };
  const message = create(CapMessageSchema, { kind: { case: "message", value } }) as CapMessage;
  const sent = await messages.sendMessage({ requestId: "g1", message }, as("orchestrator"));
  expect(sent).toMatchObject({ effect: MessageEffect.SAID, engineTaskId: "" });
  const { lastSequence } = await messages.listInbox({ agentId: "user" }, as("user"));
  const stop = new AbortController();
  const watched = messages.watchInbox(
    { agentId: "user", afterSequence: lastSequence - 1n },
    { ...as("user"), signal: stop.signal },
  );
  for await (const { message: entry } of watched) {
    expect(entry).toMatchObject({ sequence: lastSequence, messageId: sent.messageId });
    break;
  }
  stop.abort();
  const forged = messages.sendMessage({ message }, as("user"));
  expect(await refusal(forged)).toMatchObject({
    reason: "CALLER_NOT_ALLOWED",
    metadata: { error_code: "403" },
  });
});

test("what comes as protobuf and no document could say is refused", async () => {
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
  ["who is nobody", "nobody", REQUEST, 401],
  ["who is another", "stranger-1", REQUEST, 403],
  ["a recipient that is not there", "user", { ...REQUEST, recipient_id: "nobody-1" }, 404],
  ["a lineage that the sender has no part in", "stranger-1", { ...REQUEST, sender_id: "stranger-1" }, 404],
  ["a task that is not there", "user", { ...REQUEST, task_id: "M1.7" }, 404],
  [
    "a conversation that an agent opens",
    "stranger-1",
    { ...REQUEST, task_id: "N1", sender_id: "stranger-1" },
    404,
  ],
  ["a task id of no form", "user", { ...REQUEST, task_id: "M1..2" }, 400],
  ["a type that there is not", "user", { ...REQUEST, type: "gossip" }, 400],
  ["words without end", "user", { ...REQUEST, content: "x".repeat(20_000) }, 400],
  ["itself", "user", { ...REQUEST, recipient_id: "user" }, 403],
  [
    "a tool's result that is nobody's",
    "user",
    { ...REQUEST, attachments: [{ type: "tool_call_result", server_id: "S", tool: "t", result: 1 }] },
    403,
  ],
])("refuses %s", async (_name, id, message, code) => {
  const answer = await cast.as(id).send(message as never);
  expect(answer).toMatchObject({ status: code, body: { type: "error_response", error_code: code } });
});

test("the text's broken example is refused with the place of the fault", async () => {
  // As the text has it: no comma after `inquiry`, and one too many after the attachment.
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

test("manifests go in and come out as the text has them", async () => {
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
