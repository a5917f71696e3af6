import { create, fromJson, fromJsonString, type JsonValue } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import type { SharedContext } from "@depute/contracts/depute/tasks/v1/context_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Message,
  MessageSchema,
  type Part,
  PartSchema,
  Role,
  type SendMessageRequest,
  SendMessageRequestSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { partsIn, textsOf } from "@depute/wire/a2a";
import type { A2aAddress } from "./agent-address.ts";
import { descriptionOf } from "./hand-over.ts";

/**
 * Creates the message that begins a task at an A2A agent. The message's id is the platform's id of the task at the
 * agent.
 */
export function firstMessage(
  task: Task,
  input: JsonValue | undefined,
  contexts: readonly SharedContext[],
  remoteId: string,
): Message {
  const parts = [...partsOf(descriptionOf(task), input), ...contexts.map(contextPart)];
  const message = create(MessageSchema, { messageId: remoteId, role: Role.USER, parts });
  if (task.capabilityId !== "") message.metadata = { skill: task.capabilityId };
  return message;
}

/**
 * Creates the message that answers a question of an A2A agent.
 *
 * @param number the number of answers before this answer
 */
export function answerMessage(
  answer: JsonValue,
  { taskId, contextId }: { readonly taskId: string; readonly contextId: string },
  remoteId: string,
  number: number,
): Message {
  const messageId = `${remoteId}:answer:${number}`;
  return create(MessageSchema, { messageId, taskId, contextId, role: Role.USER, parts: [partOf(answer)] });
}

/**
 * Creates the request that sends a message. An agent without streams must respond at once; the platform later polls the
 * task.
 */
export function sendRequest({ tenant, streaming }: A2aAddress, message: Message): SendMessageRequest {
  return create(SendMessageRequestSchema, {
    tenant,
    message,
    ...(streaming ? {} : { configuration: { returnImmediately: true, historyLength: 0 } }),
  });
}

/**
 * Returns the parts of a task's content: its description as text, then its input. An input `{"parts": [...]}` in A2A's
 * form becomes these parts. Omits the description if the input repeats it.
 */
export function partsOf(description: string, input: JsonValue | undefined): Part[] {
  const inputParts = input === undefined ? [] : (partsIn(input) ?? [partOf(input)]);
  const isRepeated = description === "" || textsOf(inputParts).join("\n") === description;
  return isRepeated && inputParts.length > 0 ? inputParts : [textPart(description), ...inputParts];
}

function contextPart({ envelope }: SharedContext): Part {
  const data = fromJsonString(ValueSchema, new TextDecoder().decode(envelope?.data));
  return create(PartSchema, {
    content: { case: "data", value: data },
    metadata: { context: envelope?.id ?? "" },
  });
}

function partOf(value: JsonValue): Part {
  if (typeof value === "string") return textPart(value);
  return create(PartSchema, { content: { case: "data", value: fromJson(ValueSchema, value) } });
}

function textPart(value: string): Part {
  return create(PartSchema, { content: { case: "text", value } });
}
