import { isObject } from "@depute/core";
import { LISTEN } from "./methods.ts";
import { INVALID_PARAMS, Refusal } from "./refusal.ts";

/**
 * Returns the addresses of resources to which a request listens; empty for any other request (MCP 2026-07-28,
 * `subscriptions/listen`). Values that are not texts are left out here, because the SDK refuses them.
 */
export function listenedResources(method: unknown, params: Readonly<Record<string, unknown>>): string[] {
  const { notifications } = params;
  const uris = method === LISTEN && isObject(notifications) ? notifications.resourceSubscriptions : undefined;
  return Array.isArray(uris) ? [...new Set(uris.filter((uri) => typeof uri === "string"))] : [];
}

/** Maximum number of tasks to which one request listens. */
const MAX_LISTENED_TASKS = 100;

/**
 * Returns the ids of tasks to which a request listens; empty for any other request. (MCP 2026-07-28, extension
 * io.modelcontextprotocol/tasks)
 *
 * @throws Refusal for a value that is not an id, and for more than 100 ids
 */
export function listenedTaskIds(method: unknown, params: Readonly<Record<string, unknown>>): string[] {
  const { notifications } = params;
  const ids = method === LISTEN && isObject(notifications) ? notifications.taskIds : undefined;
  if (ids === undefined) return [];
  const isValid = Array.isArray(ids) && ids.every((id) => typeof id === "string");
  if (isValid && ids.length <= MAX_LISTENED_TASKS) return [...new Set<string>(ids)];
  throw new Refusal(INVALID_PARAMS, "Invalid params", {
    reason: "INVALID_REQUEST",
    detail: `notifications.taskIds must be a list of at most ${MAX_LISTENED_TASKS} texts`,
  });
}
