import { fromJson, type JsonObject, type JsonValue, toJson } from "@bufbuild/protobuf";
import { durationFromMs, type Timestamp, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type Task, type TaskQuestion, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { ErrorReason, formatTime, fromTimestamp, isObject } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { type McpTask, type OwnTasks, toolResult } from "@depute/mcp";
import { refusalIn } from "../../edge/fault.ts";
import type { WireCall } from "../../edge/wire-call.ts";
import { type OwnClients, statusWord, toView } from "./methods.ts";

/** Number of tasks on one page of a list. */
const PAGE_SIZE = 50;
/** Duration of one call that waits for the end of a task. */
const WAIT = durationFromMs(25_000);

/** The refusals of a task that does not exist, or that the caller may not know. */
const ABSENT: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.TASK_NOT_FOUND,
  ErrorReason.CALLER_NOT_ALLOWED,
  ErrorReason.INVALID_REQUEST,
]);

/** Returns Depute's tasks as tasks of MCP. The id of an MCP task is the id of the task itself. */
export function ownTasks({ tasks }: OwnClients): OwnTasks<WireCall> {
  const read = async (taskId: string, options: WireCall["asCaller"]) =>
    (await tasks.getTask({ taskId }, options)).task;
  return {
    get: (taskId, call) => unlessAbsent(() => read(taskId, call.asCaller)),
    async list(cursor, call) {
      const page = await tasks.listTasks({ pageSize: PAGE_SIZE, pageToken: cursor }, call.asCaller);
      return { tasks: page.tasks.map(toMcpTask), nextCursor: page.nextPageToken };
    },
    answer: (taskId, responses, call) =>
      unlessAbsent(async () => {
        // Only the main call carries the caller's rights, so this read decides nothing but the key.
        const { question, questionTime } = (await read(taskId, call.aside)) ?? {};
        const key = question && questionKey(taskId, questionTime);
        const response = key !== undefined && Object.hasOwn(responses, key) ? responses[key] : undefined;
        if (question === undefined || key === undefined || response === undefined)
          return read(taskId, call.asCaller);
        const input = fromJson(ValueSchema, answerIn(response, question));
        try {
          return (await tasks.provideInput({ taskId, requestId: `mcp/${key}`, input }, call.asCaller)).task;
        } catch (thrown) {
          // The question has an answer already, and an answered key is ignored.
          if (ANSWERED.has(refusalIn(thrown).reason)) return read(taskId, call.aside);
          throw thrown;
        }
      }),
    cancel: (taskId, call) =>
      unlessAbsent(async () => {
        try {
          return (await tasks.cancelTask({ taskId }, call.asCaller)).task;
        } catch (thrown) {
          if (refusalIn(thrown).reason === ErrorReason.TASK_NOT_CANCELLABLE) return read(taskId, call.aside);
          throw thrown;
        }
      }),
    ended: (taskId, call) =>
      unlessAbsent(async () => {
        let answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.asCaller);
        while (answer.timedOut) answer = await tasks.waitTask({ taskId, timeout: WAIT }, call.aside);
        return answer.task;
      }),
  };
}

/** The refusals of an answer to a question that is not open anymore. */
const ANSWERED: ReadonlySet<ErrorReason> = new Set([
  ErrorReason.REQUEST_ID_REUSED,
  ErrorReason.TASK_STATE_CONFLICT,
]);

async function unlessAbsent(read: () => Promise<Task | undefined>): Promise<McpTask | undefined> {
  try {
    const task = await read();
    return task && toMcpTask(task);
  } catch (thrown) {
    if (ABSENT.has(refusalIn(thrown).reason)) return undefined;
    throw thrown;
  }
}

/** Converts a task to the form of MCP. A task that ended without an output is completed with an error result. */
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

/** Describes the state for people: the words of the platform, and the newest progress or failure. */
function messageOf(task: Task): string {
  const { progress, failure, question } = task;
  const name = statusWord(task).replaceAll("_", " ");
  const detail = failure?.message || question?.prompt || progress?.message || "";
  return detail === "" ? name : `${name}: ${detail}`;
}

/**
 * Returns the key of a question, which no other question of a task has: a worker asks one question at a time. The key
 * also names the answer's request, so an answer that arrives twice counts once.
 */
function questionKey(taskId: string, time: Timestamp | undefined): string {
  return sha256Hex(`${taskId} ${time?.seconds}.${time?.nanos}`).slice(0, 32);
}

/** Kinds of members that a form of MCP may have. (MCP, Elicitation) */
const FORM_TYPES: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean"]);

/** Whether the details of a question are a schema that a form of MCP can show: an object of plain members. */
function isForm(details: JsonValue | undefined): details is JsonObject {
  if (!isObject(details) || details.type !== "object" || !isObject(details.properties)) return false;
  const members = Object.values(details.properties);
  return members.length > 0 && members.every((member) => isObject(member) && FORM_TYPES.has(member.type));
}

function detailsOf({ details }: TaskQuestion): JsonValue | undefined {
  return details && toJson(ValueSchema, details);
}

/** The schema of an answer in words. */
const IN_WORDS: JsonObject = {
  type: "object",
  properties: { answer: { type: "string", title: "Answer" } },
  required: ["answer"],
};

/** Returns the elicitation for a question. Details that are no form are part of the message. */
function elicitationOf(question: TaskQuestion): JsonObject {
  const details = detailsOf(question);
  if (isForm(details)) return { mode: "form", message: question.prompt, requestedSchema: details };
  const message = details === undefined ? question.prompt : `${question.prompt}\n${JSON.stringify(details)}`;
  return { mode: "form", message, requestedSchema: IN_WORDS };
}

/** Returns the answer in the result of an elicitation. It is null if the person declined or closed the question. */
function answerIn(response: unknown, question: TaskQuestion): JsonValue {
  if (!isObject(response) || response.action !== "accept") return null;
  const content = (response.content ?? {}) as JsonObject;
  return isForm(detailsOf(question)) ? content : (content.answer ?? null);
}

function timeOf(time: Timestamp | undefined): string {
  return formatTime(time === undefined ? 0 : fromTimestamp(time));
}
