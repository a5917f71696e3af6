import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ConversationService } from "@depute/contracts/depute/tasks/v1/conversation_service_pb";
import {
  type TaskPushNotificationConfig,
  TaskPushNotificationConfigSchema,
} from "@depute/contracts/lf/a2a/v1/a2a_pb";
import {
  type Clock,
  DeputeError,
  decodePageToken,
  ErrorReason,
  encodePageToken,
  pageSize,
} from "@depute/core";
import type { Authority, Outbound } from "@depute/service";
import type { ReadTx } from "@depute/store";
import {
  asCaller,
  type Caller,
  isDelegator,
  type TaskEngine,
  type TaskRecord,
  taskNotFound,
} from "../../core/index.ts";
import {
  countWebhooks,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  markWebhooks,
  putWebhook,
  type WebhookRow,
} from "../store/webhook-rows.ts";
import type { WebhookSeal } from "../webhooks/secrets.ts";

/** Maximum number of webhooks of one task. */
const MAX_WEBHOOKS = 16;

/** The dependencies of the calls about webhooks. */
export interface WebhookContext {
  readonly engine: TaskEngine;
  readonly authority: Authority;
  readonly clock: Clock;
  /** The components that deliver events; undefined if the settings allow no webhooks. */
  readonly deliveries: WebhookDeliveries | undefined;
}

/** The components that deliver events to webhooks. */
export interface WebhookDeliveries {
  readonly outbound: Outbound;
  readonly seal: WebhookSeal;
  /** Makes the sender check now for new events to deliver. */
  wake(): void;
}

type WebhookCalls = "createWebhook" | "getWebhook" | "listWebhooks" | "deleteWebhook";

/** Handles the calls about webhooks. Only the delegator of a task sees the task's webhooks. */
export function webhookCalls(
  webhooks: WebhookContext,
): Pick<ServiceImpl<typeof ConversationService>, WebhookCalls> {
  const { engine } = webhooks;
  return {
    async createWebhook({ config, agentId, afterSequence, validateOnly }, context) {
      const [{ outbound, seal, wake }, caller] = await admitted(webhooks, context);
      if (config === undefined) throw new Error("a valid request has a config");
      outbound.check(config.url);
      if (validateOnly) return { config: withoutSecrets(config) };
      const { taskId, id, url, authentication } = config;
      const sealed = seal.seal(config);
      await engine.store.write(async (tx) => {
        const isConversation = await markWebhooks(tx, taskId);
        const { task } = await ownTask(tx, engine, caller, taskId, agentId);
        if (!isConversation) throw noConversation();
        const isNew = (await findWebhook(tx, taskId, id)) === undefined;
        if (isNew && (await countWebhooks(tx, taskId)) >= MAX_WEBHOOKS) throw tooMany();
        const knownSequence = Number(task.lastSequence);
        await putWebhook(tx, {
          taskId,
          id,
          delegator: task.delegator,
          url,
          scheme: authentication?.scheme ?? "",
          sealed,
          sentSequence: Math.min(Number(afterSequence ?? task.lastSequence), knownSequence),
          knownSequence,
          nextMs: webhooks.clock.now(),
        });
        tx.afterCommit(wake);
      });
      return { config: withoutSecrets(config) };
    },

    async getWebhook({ taskId, agentId, webhookId }, context) {
      const [, caller] = await admitted(webhooks, context);
      return engine.store.read(async (tx) => {
        await ownTask(tx, engine, caller, taskId, agentId);
        const webhook = await findWebhook(tx, taskId, webhookId);
        if (webhook === undefined) throw taskNotFound(taskId);
        return { config: configOf(webhook) };
      });
    },

    async listWebhooks(request, context) {
      const { taskId, agentId, pageToken } = request;
      const [, caller] = await admitted(webhooks, context);
      const filters = { webhooksOf: taskId };
      const [afterId = ""] = decodePageToken(pageToken, filters) ?? [];
      const size = pageSize(request.pageSize);
      return engine.store.read(async (tx) => {
        await ownTask(tx, engine, caller, taskId, agentId);
        // Reads one more webhook than the page holds, to find out whether another page follows.
        const rows = await listWebhooks(tx, taskId, String(afterId), size + 1);
        const page = rows.slice(0, size);
        const last = rows.length > size ? page.at(-1) : undefined;
        const nextPageToken = last === undefined ? "" : encodePageToken([last.id], filters);
        return { configs: page.map(configOf), nextPageToken };
      });
    },

    async deleteWebhook({ taskId, agentId, webhookId }, context) {
      const [, caller] = await admitted(webhooks, context);
      await engine.store.write(async (tx) => {
        await ownTask(tx, engine, caller, taskId, agentId);
        await deleteWebhook(tx, taskId, webhookId);
      });
      return {};
    },
  };
}

/**
 * Returns the delivery components and the caller.
 *
 * @throws DeputeError PUSH_NOTIFICATIONS_UNSUPPORTED, and the errors of Authority.identify
 */
async function admitted(
  { authority, deliveries }: WebhookContext,
  context: HandlerContext,
): Promise<[WebhookDeliveries, Caller]> {
  const caller = asCaller(await authority.identify(context));
  if (deliveries !== undefined) return [deliveries, caller];
  throw new DeputeError(
    ErrorReason.PUSH_NOTIFICATIONS_UNSUPPORTED,
    "the platform does not call webhooks: subscribe to the task instead",
  );
}

/**
 * @param agentId the delegate that the request names; empty for none
 * @throws DeputeError TASK_NOT_FOUND if the caller is not the task's delegator, or if the task has another delegate
 */
async function ownTask(
  tx: ReadTx,
  engine: TaskEngine,
  caller: Caller,
  taskId: string,
  agentId: string,
): Promise<TaskRecord> {
  const record = await engine.find(tx, taskId);
  if (record === undefined || !isDelegator(caller, record)) throw taskNotFound(taskId);
  if (agentId !== "" && record.task.agentId !== agentId) throw taskNotFound(taskId);
  return record;
}

/**
 * Returns a webhook's config without its secrets. The platform sends these secrets only to the webhook's
 * receiver.
 */
function withoutSecrets(config: TaskPushNotificationConfig): TaskPushNotificationConfig {
  const { taskId, id, url, authentication } = config;
  const scheme = authentication?.scheme ?? "";
  return create(TaskPushNotificationConfigSchema, {
    taskId,
    id,
    url,
    ...(scheme !== "" && { authentication: { scheme } }),
  });
}

function configOf({ taskId, id, url, scheme }: WebhookRow): TaskPushNotificationConfig {
  return create(TaskPushNotificationConfigSchema, {
    taskId,
    id,
    url,
    ...(scheme !== "" && { authentication: { scheme } }),
  });
}

function noConversation(): DeputeError {
  const detail = "the task did not begin with an A2A message: subscribe to the task instead";
  return new DeputeError(ErrorReason.OPERATION_UNSUPPORTED, detail);
}

function tooMany(): DeputeError {
  return new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the task has too many webhooks: delete one first", {
    metadata: { limit: "webhooks", max: String(MAX_WEBHOOKS) },
  });
}
