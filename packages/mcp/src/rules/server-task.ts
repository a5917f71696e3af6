import { isObject } from "@depute/core";
import { type Era, TASKS_EXTENSION } from "./task-form.ts";

type Result = Readonly<Record<string, unknown>>;

/** The methods on tasks, by era. (MCP 2025-11-25, Tasks; MCP 2026-07-28, extension io.modelcontextprotocol/tasks) */
export const TASK_METHODS: Readonly<Record<Era, readonly string[]>> = {
  legacy: ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"],
  modern: ["tasks/get", "tasks/update", "tasks/cancel"],
};

/** The methods that change a task. All other methods on tasks only read. */
export const CHANGING_TASK_METHODS: readonly string[] = ["tasks/update", "tasks/cancel"];

/** The member of `_meta` that names the task of a message. (MCP 2025-11-25, Tasks) */
const RELATED_TASK = "io.modelcontextprotocol/related-task";

export function isTaskMethod(method: string): boolean {
  return TASK_METHODS.legacy.includes(method) || TASK_METHODS.modern.includes(method);
}

/** Whether a set of capabilities declares the extension for tasks. */
export function declaresTasks(capabilities: Result | undefined): boolean {
  return isObject(capabilities?.extensions) && isObject(capabilities.extensions[TASKS_EXTENSION]);
}

/**
 * Returns the capabilities that declare that the server runs tool calls as tasks; undefined if the server runs none.
 */
export function shownTaskCapabilities(
  era: Era,
  { tasks, ...capabilities }: Result,
): Record<string, Record<string, object>> | undefined {
  if (era === "modern")
    return declaresTasks(capabilities) ? { extensions: { [TASKS_EXTENSION]: {} } } : undefined;
  const { requests, list, cancel } = isObject(tasks) ? tasks : {};
  const { tools } = isObject(requests) ? requests : {};
  if (!isObject(tools) || !isObject(tools.call)) return undefined;
  return {
    tasks: {
      ...(isObject(list) && { list: {} }),
      ...(isObject(cancel) && { cancel: {} }),
      requests: { tools: { call: {} } },
    },
  };
}

/** Whether a tool's definition says that it runs only as a task. (MCP 2025-11-25, `execution.taskSupport`) */
export function runsOnlyAsTask(definition: unknown): boolean {
  const execution = isObject(definition) ? definition.execution : undefined;
  return isObject(execution) && execution.taskSupport === "required";
}

/**
 * Returns the id of the task that a server created for a call; undefined if the server returned a result instead of a
 * task.
 */
export function createdTaskId(era: Era, result: Result): unknown {
  if (era === "modern") return result.resultType === "task" ? result.taskId : undefined;
  return isObject(result.task) ? result.task.taskId : undefined;
}

/**
 * Returns a server's response about a task, with the task's id replaced by `taskId`. The result of the tool is not
 * changed.
 */
export function withTaskId(method: string, answer: Result, taskId: string): Record<string, unknown> {
  const related = relatedTo(answer, taskId);
  const { inputRequests, task } = related;
  return {
    ...related,
    ...(method !== "tasks/result" && typeof related.taskId === "string" && { taskId }),
    ...(method === "tools/call" && isObject(task) && { task: { ...task, taskId } }),
    ...(isObject(inputRequests) && {
      inputRequests: Object.fromEntries(
        Object.entries(inputRequests).map(([key, request]) => [key, askRelatedTo(request, taskId)]),
      ),
    }),
  };
}

function askRelatedTo(request: unknown, taskId: string): unknown {
  if (!isObject(request) || !isObject(request.params)) return request;
  return { ...request, params: relatedTo(request.params, taskId) };
}

/** Returns the id of the task that a message names in its `_meta`; undefined if the message names no task. */
export function relatedTaskId({ _meta: meta }: Result): unknown {
  const related = isObject(meta) ? meta[RELATED_TASK] : undefined;
  return isObject(related) ? related.taskId : undefined;
}

/** Returns a message with the task id in its `_meta` replaced by `taskId`. */
export function relatedTo(message: Result, taskId: string): Result {
  const { _meta: meta } = message;
  if (!isObject(meta) || !isObject(meta[RELATED_TASK])) return message;
  return { ...message, _meta: { ...meta, [RELATED_TASK]: { taskId } } };
}

/**
 * The `_meta` key under which a result carries a task. The SDK's client refuses results of the type `task`, so the
 * proxy wraps the task in a result of the type `complete`.
 */
const CARRIED = "depute.dev/carried-task";

/**
 * Wraps a task that a server returned for a call, so that the SDK's client accepts it as a result. `carriedTask`
 * unwraps it.
 *
 * @param message a message of the server; it is changed in place
 */
export function carryTask(message: unknown): void {
  if (!isObject(message) || !isObject(message.result) || message.result.resultType !== "task") return;
  message.result = { resultType: "complete", content: [], _meta: { [CARRIED]: message.result } };
}

/** Returns the task that a result carries. If the result carries no task, returns the result itself. */
export function carriedTask(result: Result): Result {
  const carried = isObject(result._meta) ? result._meta[CARRIED] : undefined;
  return isObject(carried) ? carried : result;
}
