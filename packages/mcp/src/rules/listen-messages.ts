import { isObject } from "@depute/core";
import { SUBSCRIPTION_ID_META_KEY } from "@modelcontextprotocol/server";

/** A JSON object. */
type Json = Readonly<Record<string, unknown>>;

/** The method with which a server acknowledges `subscriptions/listen`. (MCP 2026-07-28) */
export const ACKNOWLEDGED = "notifications/subscriptions/acknowledged";

/**
 * Returns an acknowledgement that also names resources and tasks.
 *
 * @param message the SDK's acknowledgement, which names no tasks
 * @param added the members to add to `notifications`
 * @returns the acknowledgement, and whether the SDK's own acknowledgement was empty
 */
export function acknowledged(
  message: Json,
  added: Json,
): { readonly message: Json; readonly isOnly: boolean } {
  const params = isObject(message.params) ? message.params : {};
  const honored = isObject(params.notifications) ? params.notifications : {};
  return {
    message: { ...message, params: { ...params, notifications: { ...honored, ...added } } },
    isOnly: Object.keys(honored).length === 0,
  };
}

/** Returns the id of the `subscriptions/listen` request to which a notification belongs; undefined if there is none. */
export function subscriptionOf({ params }: Json): unknown {
  const meta = isObject(params) ? params._meta : undefined;
  return isObject(meta) ? meta[SUBSCRIPTION_ID_META_KEY] : undefined;
}

/** Returns the notification of a task's state. (MCP 2026-07-28, extension io.modelcontextprotocol/tasks) */
export function taskNotification(id: unknown, task: Json): Json {
  return notificationOf(id, "notifications/tasks", task);
}

/** Returns the notification of a changed resource. (MCP 2026-07-28, `subscriptions/listen`) */
export function resourceNotification(id: unknown, uri: string): Json {
  return notificationOf(id, "notifications/resources/updated", { uri });
}

/** Returns the result with which a server ends `subscriptions/listen`. */
export function endOfListen(id: unknown): Json {
  const result = { resultType: "complete", _meta: { [SUBSCRIPTION_ID_META_KEY]: id } };
  return { jsonrpc: "2.0", id, result };
}

function notificationOf(id: unknown, method: string, params: Json): Json {
  const _meta = { ...(params._meta as Json | undefined), [SUBSCRIPTION_ID_META_KEY]: id };
  return { jsonrpc: "2.0", method, params: { ...params, _meta } };
}
