import type { JsonObject } from "@bufbuild/protobuf";

/** The era of MCP revisions of a server or a client: `modern` since 2026-07-28, `legacy` before. */
export type Era = "legacy" | "modern";

/** The id of the extension for tasks of revision 2026-07-28. */
export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";

/** The result of a tool. (MCP, Tools) */
export type ToolResult = {
  readonly content: JsonObject[];
  readonly structuredContent: JsonObject;
  readonly isError?: true;
};

/** A task of MCP, independent of the form in which each era writes tasks. */
export interface McpTask {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  readonly statusMessage?: string;
  /** RFC 3339, UTC. */
  readonly createdAt: string;
  /** RFC 3339, UTC. */
  readonly lastUpdatedAt: string;
  /** The elicitation for the task's open question; present with the status `input_required`. */
  readonly question?: { readonly key: string; readonly params: JsonObject };
  /** The result of the tool; present with the status `completed`. */
  readonly result?: ToolResult;
}

/** The interval in milliseconds at which a client should read a task. */
const POLL_MS = 1_000;

/** Returns a tool result that contains a value as structured content, and as text for a model. */
export function toolResult(value: JsonObject, isError = false): ToolResult {
  const content = [{ type: "text", text: JSON.stringify(value) }];
  return { content, structuredContent: value, ...(isError && { isError }) };
}

/**
 * Returns a task in the form of the extension. `ttlMs` is null, because the platform counts the retention from the end
 * of a task. (MCP 2026-07-28, extension io.modelcontextprotocol/tasks)
 *
 * @param canAnswer whether the client declared that it answers elicitations by form
 */
export function extensionTask(task: McpTask, canAnswer: boolean): JsonObject {
  const { taskId, status, statusMessage, createdAt, lastUpdatedAt, question, result } = task;
  return {
    ...{ taskId, status, createdAt, lastUpdatedAt, ttlMs: null, pollIntervalMs: POLL_MS },
    ...(statusMessage === undefined ? {} : { statusMessage }),
    ...(question !== undefined &&
      canAnswer && {
        inputRequests: { [question.key]: { method: "elicitation/create", params: question.params } },
      }),
    ...(result === undefined ? {} : { result }),
  };
}

/**
 * Returns a task in the earlier form, in which a task with an error result has the status `failed`. (MCP 2025-11-25,
 * Tasks)
 */
export function earlierTask(task: McpTask): JsonObject {
  const { taskId, statusMessage, createdAt, lastUpdatedAt, result } = task;
  const status = result?.isError ? "failed" : task.status;
  return {
    ...{ taskId, status, createdAt, lastUpdatedAt, ttl: null, pollInterval: POLL_MS },
    ...(statusMessage === undefined ? {} : { statusMessage }),
  };
}
