import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { CapMessageSchema } from "@depute/contracts/cap/v1/message_pb";
import {
  type InboxMessage,
  type LineageMessage,
  type LineageTask,
  MessageEffectSchema,
  MessageOriginSchema,
  type SendMessageResponse,
} from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { TaskStatusSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import {
  type Review,
  type ReviewInquiry,
  ReviewKindSchema,
  ReviewStateSchema,
} from "@depute/contracts/depute/verifier/v1/review_service_pb";
import { CAP_CODES, formatTime, fromTimestamp } from "@depute/core";
import { encode, parseJson, refusalOf } from "@depute/wire";
import type { Body } from "../../edge/route.ts";
import { BrokenJson, positionOf } from "./errors.ts";

/** Reads the document in a body. If the text is not JSON, the refusal contains the position of the fault. */
export function documentOf(body: Body | undefined): JsonValue {
  if (body === undefined) throw new Error("the request must have a body");
  const { bytes } = body;
  const parsed = parseJson(bytes, { maxBytes: bytes.length });
  if (parsed.ok) return parsed.value;
  const { error } = parsed;
  if (error.position === undefined) throw refusalOf(error);
  throw new BrokenJson(error, positionOf(bytes.toString("utf8"), error.position));
}

type Time = Parameters<typeof fromTimestamp>[0];

function timed(name: string, time: Time | undefined): JsonObject {
  return time === undefined ? {} : { [name]: formatTime(fromTimestamp(time)) };
}

/** Returns the word for an enum value in CAP's documents, for example `in_review`. */
function wordOf(
  { value }: { value: Readonly<Record<number, { localName: string }>> },
  number: number,
): string {
  return value[number]?.localName.toLowerCase() ?? "";
}

/** Converts the service's response for a sent message to the document that CAP clients receive. */
export function sentDocument(taskId: string, sent: SendMessageResponse): JsonObject {
  const { messageId, receiveTime, effect, engineTaskId, status, errorCode, errorMessage } = sent;
  return {
    message_id: messageId,
    task_id: taskId,
    ...timed("timestamp", receiveTime),
    effect: wordOf(MessageEffectSchema, effect),
    ...(engineTaskId === ""
      ? {}
      : { engine_task_id: engineTaskId, status: wordOf(TaskStatusSchema, status) }),
    ...(errorCode === 0 ? {} : { error_code: errorCode, error_message: errorMessage }),
  };
}

/** Converts an inbox's message to the document that CAP clients receive. */
export function inboxDocument(entry: InboxMessage): JsonObject {
  const { sequence, messageId, claimedTimestamp, origin, acknowledged, engineTaskId, message } = entry;
  return {
    sequence: Number(sequence),
    message_id: messageId,
    origin: wordOf(MessageOriginSchema, origin),
    acknowledged,
    ...(engineTaskId === "" ? {} : { engine_task_id: engineTaskId }),
    ...(claimedTimestamp === undefined ? {} : { claimed_timestamp: claimedTimestamp }),
    ...(message === undefined ? {} : { message: encode(CapMessageSchema, message) }),
  };
}

/** Converts a task of a lineage, with all tasks below it, to the document that CAP clients receive. */
export function lineageDocument(task: LineageTask): JsonObject {
  const { taskId, engineTaskId, delegatorId, agentId, overseerId, status, reviewedTaskId, contextSummary } =
    task;
  const members: JsonObject =
    engineTaskId === ""
      ? {}
      : {
          engine_task_id: engineTaskId,
          delegator_id: delegatorId,
          agent_id: agentId,
          overseer: overseerId === "" ? null : overseerId,
          status: wordOf(TaskStatusSchema, status),
          ...(reviewedTaskId === "" ? {} : { reviews: reviewedTaskId }),
          ...(contextSummary === "" ? {} : { context_summary: contextSummary }),
          ...timed("created", task.createTime),
          ...timed("ended", task.endTime),
        };
  return {
    task_id: taskId,
    ...members,
    messages: task.messages.map(messageDocument),
    tasks: task.tasks.map(lineageDocument),
  };
}

function messageDocument(message: LineageMessage): JsonObject {
  const { sequence, messageType, senderId, recipientId, origin, effect, errorCode, reason, excerpt } =
    message;
  const { attachmentCount, carriesHeldResult, heldTaskId } = message;
  return {
    number: Number(sequence),
    type: messageType,
    sender_id: senderId,
    recipient_id: recipientId,
    ...timed("timestamp", message.receiveTime),
    origin: wordOf(MessageOriginSchema, origin),
    effect: wordOf(MessageEffectSchema, effect),
    ...(errorCode === 0 ? {} : { error_code: errorCode }),
    ...(reason === "" ? {} : { reason }),
    ...(excerpt === "" ? {} : { excerpt }),
    attachments: attachmentCount,
    ...(carriesHeldResult ? { carries_held_result: true } : {}),
    ...(heldTaskId === "" ? {} : { held_task_id: heldTaskId }),
  };
}

/** Converts an entry of the review queue to the document that CAP clients receive. */
export function reviewDocument(review: Review): JsonObject {
  const { id, kind, state, subject, title, reviewers, decidedBy, reason } = review;
  return {
    review_id: id,
    kind: wordOf(ReviewKindSchema, kind),
    state: wordOf(ReviewStateSchema, state),
    subject,
    title,
    reviewers,
    ...timed("created", review.createTime),
    ...timed("escalates", review.escalationTime),
    ...timed("deadline", review.deadlineTime),
    ...(review.inquiries.length === 0 ? {} : { inquiries: review.inquiries.map(inquiryDocument) }),
    ...(decidedBy === "" ? {} : { decided_by: decidedBy, reason }),
    ...timed("decided", review.decideTime),
  };
}

function inquiryDocument({ number, text, answer, createTime, answerTime }: ReviewInquiry): JsonObject {
  return {
    number,
    inquiry: text,
    ...timed("asked", createTime),
    ...(answer === "" ? {} : { answer }),
    ...timed("answered", answerTime),
  };
}

/** Returns the published codes of error_response, and the effect of each code on a task. */
export function codesDocument(): JsonObject {
  return {
    codes: [...CAP_CODES].map(([code, { meaning, action }]) => ({ code, meaning, action })),
    unlisted: "escalate",
  };
}

/**
 * Returns an HTML page with a lineage as text, and the source of its Mermaid diagram. The page loads no files and runs
 * no scripts.
 */
export function lineagePage(taskId: string, text: string, mermaid: string): string {
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>${escaped(taskId)}</title></head>
<body>
<h1>${escaped(taskId)}</h1>
<pre>${escaped(text)}</pre>
<h2>Mermaid</h2>
<pre class="mermaid">${escaped(mermaid)}</pre>
</body>
</html>
`;
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ENTITIES[char] ?? "");
}
