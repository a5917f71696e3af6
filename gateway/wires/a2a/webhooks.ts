import { create } from "@bufbuild/protobuf";
import {
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  ListTaskPushNotificationConfigsResponseSchema,
  type TaskPushNotificationConfig,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { ErrorReason, invalid, randomUuid } from "@depute/core";
import type { Clients } from "../../edge/clients.ts";
import { refusalIn, renameFields } from "../../edge/fault.ts";
import { type A2aCall, agentOf } from "./call.ts";

/** A2A's methods for webhooks. All bindings use them. The answers contain no secrets. (A2A 3.1.7 to 3.1.10) */
export class A2aWebhooks {
  readonly #clients: Pick<Clients, "conversations">;

  constructor(clients: Pick<Clients, "conversations">) {
    this.#clients = clients;
  }

  /**
   * CreateTaskPushNotificationConfig. (A2A 3.1.7) A new webhook first receives the next event of the task.
   *
   * @throws DeputeError PUSH_NOTIFICATIONS_UNSUPPORTED, TASK_NOT_FOUND, OPERATION_UNSUPPORTED, LIMIT_EXCEEDED;
   * INVALID_REQUEST if the request names no task or no agent, or if the platform may not call the address
   */
  async create(config: TaskPushNotificationConfig, a2aCall: A2aCall): Promise<TaskPushNotificationConfig> {
    const agentId = agentOf(config, a2aCall);
    if (config.taskId === "") throw invalid("task_id", "must name a task");
    const request = { config: { ...config, id: config.id || randomUuid() }, agentId };
    const { config: created } = await this.#clients.conversations
      .createWebhook(request, a2aCall.call.asCaller)
      .catch(inTermsOf(""));
    return withTenant(created, config);
  }

  /** GetTaskPushNotificationConfig. (A2A 3.1.8) */
  async get(
    request: GetTaskPushNotificationConfigRequest,
    a2aCall: A2aCall,
  ): Promise<TaskPushNotificationConfig> {
    const { taskId, id: webhookId } = request;
    const asked = { taskId, webhookId, agentId: agentOf(request, a2aCall) };
    const { config } = await this.#clients.conversations.getWebhook(asked, a2aCall.call.asCaller);
    return withTenant(config, request);
  }

  /** ListTaskPushNotificationConfigs. (A2A 3.1.9) */
  async list(
    request: ListTaskPushNotificationConfigsRequest,
    a2aCall: A2aCall,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    const { taskId, pageSize, pageToken } = request;
    const asked = { taskId, pageSize, pageToken, agentId: agentOf(request, a2aCall) };
    const { configs, nextPageToken } = await this.#clients.conversations.listWebhooks(
      asked,
      a2aCall.call.asCaller,
    );
    return create(ListTaskPushNotificationConfigsResponseSchema, {
      configs: configs.map((config) => withTenant(config, request)),
      nextPageToken,
    });
  }

  /** DeleteTaskPushNotificationConfig. A repeated call changes nothing. (A2A 3.1.10) */
  async delete(request: DeleteTaskPushNotificationConfigRequest, a2aCall: A2aCall): Promise<void> {
    const { taskId, id: webhookId } = request;
    const asked = { taskId, webhookId, agentId: agentOf(request, a2aCall) };
    await this.#clients.conversations.deleteWebhook(asked, a2aCall.call.asCaller);
  }

  /**
   * Checks the webhook in a message, before the message takes effect.
   *
   * @throws DeputeError PUSH_NOTIFICATIONS_UNSUPPORTED; INVALID_REQUEST for an address that the platform may not call
   */
  async check(config: TaskPushNotificationConfig, { call }: A2aCall): Promise<void> {
    const { conversations } = this.#clients;
    await conversations
      .createWebhook({ config, validateOnly: true }, call.aside)
      .catch(inTermsOf(IN_MESSAGE));
  }

  /**
   * Registers the webhook in a message. The tasks service has already checked the caller's permissions.
   *
   * @param afterSequence the sequence of the newest event that the answer to the message shows
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async attach(config: TaskPushNotificationConfig, afterSequence: bigint, { call }: A2aCall): Promise<void> {
    await this.#clients.conversations
      .createWebhook({ config, afterSequence }, call.aside)
      .catch(inTermsOf(IN_MESSAGE));
  }
}

/**
 * Returns a handler that rethrows a service's error in A2A's terms. If the platform may not call the address, the error
 * is that of an invalid parameter.
 *
 * @param prefix the path of the webhook's config in the request
 */
function inTermsOf(prefix: string) {
  const fields = ["task_id", "id", "url", "token", "authentication.scheme", "authentication.credentials"];
  return (thrown: unknown): never => {
    const refusal = refusalIn(thrown);
    if (refusal.reason === ErrorReason.ADDRESS_NOT_ALLOWED) throw invalid(`${prefix}url`, refusal.message);
    throw renameFields(thrown, Object.fromEntries(fields.map((name) => [`config.${name}`, prefix + name])));
  };
}

/** The path of the webhook's config in a request that sends a message. */
const IN_MESSAGE = "configuration.task_push_notification_config.";

/** Returns the config that the service returned, with the tenant of the request. */
function withTenant(
  config: TaskPushNotificationConfig | undefined,
  { tenant }: { readonly tenant: string },
): TaskPushNotificationConfig {
  if (config === undefined) throw new Error("the answer has no webhook");
  return { ...config, tenant };
}
