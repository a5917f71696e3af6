import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { SharedContextSchema } from "@depute/contracts/depute/tasks/v1/context_pb";
import { TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { MessageSchema, PartSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { describe, expect, test } from "vitest";
import { answerMessage, firstMessage, partsOf, sendRequest } from "./a2a-message.ts";

describe("the parts of a task", () => {
  test.each<[string, string, JsonValue | undefined, JsonValue[]]>([
    ["a description", "count", undefined, [{ text: "count" }]],
    ["neither a description nor an input", "", undefined, [{ text: "" }]],
    ["a text", "", "a b", [{ text: "a b" }]],
    ["a text and a description", "count", "a b", [{ text: "count" }, { text: "a b" }]],
    ["a text equal to the description", "count", "count", [{ text: "count" }]],
    ["null", "", null, [{ data: null }]],
    ["data and a description", "count", { n: 1 }, [{ text: "count" }, { data: { n: 1 } }]],
    ["A2A's parts", "x", { parts: [{ text: "x" }, { raw: "AAE=" }] }, [{ text: "x" }, { raw: "AAE=" }]],
    ["other parts", "", { parts: [1] }, [{ data: { parts: [1] } }]],
    ["no parts", "", { parts: [] }, [{ data: { parts: [] } }]],
    [
      "parts beside other members",
      "",
      { parts: [{ text: "x" }], n: 1 },
      [{ data: { parts: [{ text: "x" }], n: 1 } }],
    ],
  ])("%s", (_, description, input, parts) => {
    expect(partsOf(description, input).map((part) => toJson(PartSchema, part))).toEqual(parts);
  });
});

test("the first message contains the contexts as data, the skill, and the delegation's id", () => {
  const task = create(TaskSchema, { description: "count", capabilityId: "words" });
  const data = new TextEncoder().encode('{"lexicon":1}');
  const context = create(SharedContextSchema, { envelope: { id: "c1", data, permissions: {} } });
  const message = firstMessage(task, undefined, [context], "t.2");
  expect(toJson(MessageSchema, message)).toEqual({
    messageId: "t.2",
    role: "ROLE_USER",
    parts: [{ text: "count" }, { data: { lexicon: 1 }, metadata: { context: "c1" } }],
    metadata: { skill: "words" },
  });
});

test("an answer names the agent's task, and a repeated one has the same id", () => {
  const state = { taskId: "theirs", contextId: "c", answers: 1 };
  const message = answerMessage("red", state, "t", 1);
  expect(message).toMatchObject({ messageId: "t:answer:1", taskId: "theirs", contextId: "c" });
  expect(answerMessage("red", state, "t", 1)).toEqual(message);
  expect(answerMessage({ n: 1 }, state, "t", 2).parts[0]?.content).toEqual({
    case: "data",
    value: fromJson(ValueSchema, { n: 1 }),
  });
});

test("only an agent without streams is asked for an immediate answer", () => {
  const address = { binding: "GRPC", url: "grpc://a:1", tenant: "t" } as const;
  const message = create(MessageSchema, { messageId: "m" });
  expect(sendRequest({ ...address, streaming: true }, message).configuration).toBeUndefined();
  expect(sendRequest({ ...address, streaming: false }, message)).toMatchObject({
    tenant: "t",
    configuration: { returnImmediately: true },
  });
});
