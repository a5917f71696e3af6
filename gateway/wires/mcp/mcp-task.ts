import { type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Timestamp, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Task, type TaskQuestion, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, formatTime, fromTimestamp, isObject } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { type McpTask, toolResult } from "@depute/mcp";
import { refusalIn } from "../../edge/fault.ts";
import { statusWord, toView } from "./methods.ts";

/** The error reasons that mean that a task does not exist, is hidden from the caller, or has a malformed id. */
const ABSENT: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TASK_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.INVALID_REQUEST,
]);

/** Whether an error means that a task does not exist, is hidden from the caller, or has a malformed id. */
export function isAbsent(thrown: unknown): boolean {
  return ABSENT.has(refusalIn(thrown).reason);
}

/**
 * Converts a task to the form of MCP. A cancelled task is `cancelled`. A task that failed in any other way is
 * `completed` with an error result.
 */
export function toMcpTask(task: Task): McpTask {
  const { id, status, createTime, updateTime, question, questionTime } = task;
  const times = { createdAt: timeOf(createTime), lastUpdatedAt: timeOf(updateTime) };
  const base = { taskId: id, ...times, statusMessage: messageOf(task) };
  if (status === TaskStatus.CANCELLED) return { ...base, status: "cancelled" };
  if (task.endTime !== undefined) {
    return {
      ...base,
      status: "completed",
      result: toolResult(toView(task), status !== TaskStatus.COMPLETED),
    };
  }
  if (question === undefined) return { ...base, status: "working" };
  const key = questionKey(id, questionTime);
  return { ...base, status: "input_required", question: { key, params: elicitationOf(question) } };
}

/**
 * Describes the task's state for people: the status, and the text of the failure, the open question or the newest
 * progress.
 */
export function messageOf(task: Task): string {
  const { progress, failure, question } = task;
  const name = statusWord(task).replaceAll("_", " ");
  const detail = failure?.message || question?.prompt || progress?.message || "";
  return detail === "" ? name : `${name}: ${detail}`;
}

/**
 * Returns the key of a question. The key is unique within a task, because a worker asks one question at a time. The
 * request id of the answer is derived from the key, so an answer that arrives twice counts once.
 */
export function questionKey(taskId: string, time: Timestamp | undefined): string {
  return sha256Hex(`${taskId} ${time?.seconds}.${time?.nanos}`).slice(0, 32);
}

/** The types that a member of a form may have. (MCP, Elicitation) */
const FORM_TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean"]);

/**
 * Whether the details of a question are a schema that MCP can show as a form: an object with members of simple types.
 */
function isForm(details: JsonValue | undefined): details is JsonObject {
  if (!isObject(details) || details.type !== "object" || !isObject(details.properties)) return false;
  const members = Object.values(details.properties);
  return members.length > 0 && members.every((member) => isObject(member) && FORM_TYPES.has(member.type));
}

function detailsOf({ details }: TaskQuestion): JsonValue | undefined {
  return details && toJson(ValueSchema, details);
}

/** The schema of a form with one text field, for a free-text answer. */
const IN_WORDS: JsonObject = {
  type: "object",
  properties: { answer: { type: "string", title: "Answer" } },
  required: ["answer"],
};

/** Returns the elicitation for a question. If the question's details are not a form, the message contains them. */
export function elicitationOf(question: TaskQuestion): JsonObject {
  const details = detailsOf(question);
  if (isForm(details)) return { mode: "form", message: question.prompt, requestedSchema: details };
  const message = details === undefined ? question.prompt : `${question.prompt}\n${JSON.stringify(details)}`;
  return { mode: "form", message, requestedSchema: IN_WORDS };
}

/** Returns the answer in the result of an elicitation. Returns null if the person declined or closed the question. */
export function answerIn(response: unknown, question: TaskQuestion): JsonValue {
  if (!isObject(response) || response.action !== "accept") return null;
  const content = (response.content ?? {}) as JsonObject;
  return isForm(detailsOf(question)) ? content : (content.answer ?? null);
}

function timeOf(time: Timestamp | undefined): string {
  return formatTime(time === undefined ? 0 : fromTimestamp(time));
}
