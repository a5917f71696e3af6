import { isObject } from "@depute/core";
import type { Declared } from "./rules/client-capabilities.ts";
import { INVALID_PARAMS, MISSING_CAPABILITY, Refusal } from "./rules/refusal.ts";
import { declaresTasks } from "./rules/server-task.ts";
import { TASKS_EXTENSION } from "./rules/task-form.ts";
import { UpstreamError } from "./upstream-fault.ts";

/** Refuses a request on tasks that does not declare the extension. Throws Refusal. */
export function assertDeclared(capabilities: Declared | undefined): void {
  if (declaresTasks(capabilities)) return;
  throw new Refusal(MISSING_CAPABILITY, "the request must declare the extension for tasks", {
    requiredCapabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  });
}

/** Replaces the server's id of a task by the client's id, in an error of the server. */
export function renamedFault(thrown: unknown, taskId: string, id: string): unknown {
  if (!(thrown instanceof UpstreamError) || thrown.fault.kind !== "error") return thrown;
  const { message } = thrown.fault;
  return new UpstreamError({ ...thrown.fault, message: message.replaceAll(taskId, id) });
}

export function malformed(detail: string): UpstreamError {
  return new UpstreamError({ kind: "malformed", detail });
}

/** Whether a server's error says that a tool runs only as a task. (MCP 2026-07-28, extension for tasks) */
export function needsTaskDeclaration(code: number, data: unknown): boolean {
  if (code !== MISSING_CAPABILITY || !isObject(data) || !isObject(data.requiredCapabilities)) return false;
  return declaresTasks(data.requiredCapabilities);
}

/** The error for a tool that the caller cannot call, because the tool runs only as a task. */
export function onlyTasks(): Refusal {
  const detail =
    "the tool runs only as a task, which needs a client and a server that both support MCP 2026-07-28, or both an earlier revision: use such a client";
  return new Refusal(INVALID_PARAMS, "the tool runs only as a task", { reason: "INVALID_REQUEST", detail });
}

/** The error for an id that does not name a task of this caller. */
export function unknownTask(): Refusal {
  return new Refusal(INVALID_PARAMS, "the task does not exist: check its id", { reason: "INVALID_REQUEST" });
}
