import type { TaskPushNotificationConfig } from "@a2a-js/sdk";
import { request, type Scene, userMessage } from "./scene.ts";

/** Makes a webhook config for a task. */
export const config = (taskId: string, url: string, more: Partial<TaskPushNotificationConfig> = {}) => ({
  tenant: "",
  id: "",
  taskId,
  url,
  token: "",
  authentication: undefined,
  ...more,
});

/** A SendMessage that has a webhook, and returns at once. */
export const withWebhook = (text: string, url: string, more: Partial<TaskPushNotificationConfig> = {}) => ({
  ...request(userMessage(text)),
  configuration: {
    acceptedOutputModes: [],
    taskPushNotificationConfig: config("", url, more),
    historyLength: undefined,
    returnImmediately: true,
  },
});

/** Sends a message with a webhook, and returns the id of its task. */
export async function begin(
  scene: Scene,
  text: string,
  url: string,
  more: Partial<TaskPushNotificationConfig> = {},
) {
  const { message, ...rest } = withWebhook(text, url, more);
  const { id } = await scene.send(message, rest);
  return id;
}
