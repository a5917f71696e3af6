import type { JsonObject } from "@bufbuild/protobuf";
import { isObject } from "@depute/core";
import {
  type ClientCapabilities,
  fromJsonSchema,
  RELATED_TASK_META_KEY,
  type Server,
  type ServerCapabilities,
  type ServerContext,
} from "@modelcontextprotocol/server";
import { INVALID_PARAMS, MISSING_CAPABILITY, Refusal } from "./rules/refusal.ts";
import {
  type Era,
  earlierTask,
  extensionTask,
  type McpTask,
  TASKS_EXTENSION,
  type ToolResult,
  toolResult,
} from "./rules/task-form.ts";
import type { FollowedTasks } from "./task-streams.ts";
import type { Elicitation, Elicited, ToolSession } from "./tool-sessions.ts";

/**
 * The tasks that this process itself serves. A function that takes one task id returns undefined if the caller may not
 * see the task.
 */
export interface OwnTasks<Call> {
  get(taskId: string, call: Call): Promise<McpTask | undefined>;
  /** Lists the tasks of the caller, the newest first. */
  list(cursor: string, call: Call): Promise<{ tasks: McpTask[]; nextCursor: string }>;
  /**
   * Answers the open question of a task. Answers under keys of other questions are ignored.
   *
   * @param responses the results of elicitations, by the keys of their questions
   */
  answer(
    taskId: string,
    responses: Readonly<Record<string, unknown>>,
    call: Call,
  ): Promise<McpTask | undefined>;
  /** Cancels a task. A task that has already ended is not changed. */
  cancel(taskId: string, call: Call): Promise<McpTask | undefined>;
  /**
   * Returns those tasks of the list that the caller may follow. A holder proof is valid only once, so it authorizes
   * only the read of the first task. Of the other tasks, the caller may follow those whose delegator is the principal
   * of the proof.
   */
  listen(taskIds: readonly string[], call: Call): Promise<FollowedTasks<McpTask>>;
  /**
   * Waits until the task or the call has ended, and returns the task.
   *
   * @param elicit asks the client while the task waits for input; absent if the client answers no elicitations
   */
  ended(taskId: string, call: Call, elicit?: ElicitForTask<Call>): Promise<McpTask | undefined>;
}

/**
 * Sends a task's question to the client. Rejects if there is no response, for example because the question was
 * withdrawn.
 */
export type ElicitForTask<Call> = (elicitation: Elicitation) => Promise<Elicited<Call>>;

/** Returns the server capabilities that declare support for tasks. */
export function taskCapability(era: Era): ServerCapabilities {
  return era === "modern"
    ? { extensions: { [TASKS_EXTENSION]: {} } }
    : { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } };
}

/** Whether the client of a request accepts a task in place of a result. */
export function takesTask(
  server: Server,
  era: Era,
  params: Readonly<Record<string, unknown>> | undefined,
): boolean {
  return era === "modern" ? declaresTasks(server) : isObject(params?.task);
}

/**
 * Returns the tasks to which a request listens, in the form of the extension.
 *
 * @throws Refusal if the request does not declare the extension; the errors of the platform
 */
export async function listenedTasks<Call>(
  tasks: OwnTasks<Call>,
  taskIds: readonly string[],
  declared: ClientCapabilities | undefined,
  call: Call,
): Promise<FollowedTasks<JsonObject>> {
  if (declared?.extensions?.[TASKS_EXTENSION] === undefined) throw undeclared();
  const followed = await tasks.listen(taskIds, call);
  const canAnswer = answersForms(declared);
  return {
    taskIds: followed.taskIds,
    follow: (onTask, signal) =>
      followed.follow((taskId, task) => onTask(taskId, extensionTask(task, canAnswer)), signal),
  };
}

function undeclared(): Refusal {
  return new Refusal(MISSING_CAPABILITY, "the request must declare the extension for tasks", {
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  });
}

function declaresTasks(server: Server): boolean {
  return server.getClientCapabilities()?.extensions?.[TASKS_EXTENSION] !== undefined;
}

/** Returns the response to `tools/call` that contains a task. The task must already be stored. */
export function createdTask(era: Era, task: McpTask): JsonObject {
  return era === "legacy"
    ? { task: earlierTask(task) }
    : { resultType: "task", ...extensionTask(task, false) };
}

interface TaskMethods<Call> {
  readonly tasks: OwnTasks<Call>;
  /** The session of the requests; absent if they have none. */
  readonly session: ToolSession<Call> | undefined;
  /** Runs a method. Converts a refusal of the platform to the error of the call. */
  readonly run: <T>(context: ServerContext, method: (call: Call) => Promise<T>) => Promise<T>;
}

const NAMED = fromJsonSchema<{ taskId: string }>({
  type: "object",
  properties: { taskId: { type: "string", maxLength: 1024 } },
  required: ["taskId"],
});
const PAGE = fromJsonSchema<{ cursor?: string }>({
  type: "object",
  properties: { cursor: { type: "string", maxLength: 1024 } },
});
const UPDATE = fromJsonSchema<{ taskId: string; inputResponses?: Record<string, unknown> }>({
  type: "object",
  properties: { taskId: { type: "string", maxLength: 1024 }, inputResponses: { type: "object" } },
  required: ["taskId"],
});

/** Serves the methods on tasks in the form of one MCP era. */
export function serveTasks<Call>(server: Server, era: Era, methods: TaskMethods<Call>): void {
  if (era === "modern") serveExtension(server, methods);
  else serveEarlier(server, methods);
}

/** Serves the methods of the extension. (MCP 2026-07-28, extension io.modelcontextprotocol/tasks) */
function serveExtension<Call>(server: Server, { tasks, run }: TaskMethods<Call>): void {
  const declared = () => {
    if (!declaresTasks(server)) throw undeclared();
  };
  server.setRequestHandler("tasks/get", { params: NAMED }, async ({ taskId }, context) => {
    declared();
    const task = found(await run(context, (call) => tasks.get(taskId, call)));
    return extensionTask(task, answersForms(server.getClientCapabilities()));
  });
  server.setRequestHandler("tasks/update", { params: UPDATE }, async (params, context) => {
    declared();
    const responses = context.mcpReq.inputResponses ?? params.inputResponses ?? {};
    found(await run(context, (call) => tasks.answer(params.taskId, responses, call)));
    return {};
  });
  server.setRequestHandler("tasks/cancel", { params: NAMED }, async ({ taskId }, context) => {
    declared();
    found(await run(context, (call) => tasks.cancel(taskId, call)));
    return {};
  });
}

/** Serves the methods of the earlier form. (MCP 2025-11-25, Tasks) */
function serveEarlier<Call>(server: Server, { tasks, session, run }: TaskMethods<Call>): void {
  server.setRequestHandler("tasks/get", { params: NAMED }, async ({ taskId }, context) =>
    earlierTask(found(await run(context, (call) => tasks.get(taskId, call)))),
  );
  server.setRequestHandler("tasks/list", { params: PAGE }, async ({ cursor = "" }, context) => {
    const page = await run(context, (call) => tasks.list(cursor, call));
    const { nextCursor } = page;
    return { tasks: page.tasks.map(earlierTask), ...(nextCursor === "" ? {} : { nextCursor }) };
  });
  server.setRequestHandler("tasks/cancel", { params: NAMED }, async ({ taskId }, context) => {
    const task = found(await run(context, (call) => tasks.cancel(taskId, call)));
    if (task.status === "cancelled") return earlierTask(task);
    throw new Refusal(INVALID_PARAMS, "the task has already ended", {
      status: earlierTask(task).status ?? "",
    });
  });
  server.setRequestHandler("tasks/result", { params: NAMED }, async ({ taskId }, context) => {
    const related = { _meta: { [RELATED_TASK_META_KEY]: { taskId } } };
    const elicit: ElicitForTask<Call> | undefined =
      session === undefined || !answersForms(server.getClientCapabilities())
        ? undefined
        : ({ params, signal }) => session.elicit(context, { params: { ...params, ...related }, signal });
    const { result = CANCELLED } = found(await run(context, (call) => tasks.ended(taskId, call, elicit)));
    return { ...result, ...related };
  });
}

/** The result of a task that was cancelled. */
const CANCELLED: ToolResult = toolResult({ status: "cancelled" }, true);

/** Whether the client answers elicitations by form. An elicitation capability without a mode means forms. */
function answersForms({ elicitation }: ClientCapabilities = {}): boolean {
  return elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined);
}

/**
 * Returns a task that exists.
 *
 * @throws Refusal for a task that does not exist, has expired, or belongs to another caller
 */
function found(task: McpTask | undefined): McpTask {
  if (task === undefined) throw new Refusal(INVALID_PARAMS, "the task does not exist: check its id", {});
  return task;
}
