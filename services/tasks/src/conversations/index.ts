import { ConversationService } from "@depute/contracts/depute/tasks/v1/conversation_service_pb";
import { AllowedHosts, Outbound, type ServiceDeps, type Settings, SettingsError } from "@depute/service";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { conversationService } from "./handlers/conversation-service.ts";
import { noteChange } from "./observe.ts";
import { CONVERSATION_SETTINGS } from "./settings.ts";
import { CONVERSATION_MIGRATIONS } from "./store/migrations.ts";
import { deleteConversation } from "./store/rows.ts";
import { openWebhookSeal } from "./webhooks/secrets.ts";
import { WebhookSender } from "./webhooks/sender.ts";

/** Conversations: tasks that began with an A2A message, with their messages and webhooks. */
export const conversations = defineModule({
  name: "conversations",
  settings: CONVERSATION_SETTINGS,
  migrations: CONVERSATION_MIGRATIONS,
  open: openConversations,
});

/** @throws SettingsError for invalid hosts of webhooks, or if the key `webhooks` cannot be opened */
async function openConversations(
  deps: ServiceDeps,
  engine: TaskEngine,
  settings: Settings<typeof CONVERSATION_SETTINGS>,
): Promise<OpenModule> {
  const { authority, clock } = deps;
  const hosts = readHosts(settings.a2aWebhookHosts);
  const deliveries = hosts.isEmpty ? undefined : await openDeliveries(deps, engine, hosts);
  engine.observe((tx, change) => noteChange(tx, change, () => deliveries?.wake()));
  engine.onPurge(deleteConversation);
  const service = conversationService({ engine, authority, clock, deliveries });
  return {
    routes: (router) => router.service(ConversationService, service),
    start: () => deliveries?.sender.start(),
    async close() {
      await deliveries?.sender.close();
      deliveries?.outbound.close();
      deliveries?.seal.close();
    },
  };
}

async function openDeliveries(deps: ServiceDeps, engine: TaskEngine, hosts: AllowedHosts) {
  const { clock, timers, random, log, keys } = deps;
  const seal = await openWebhookSeal(keys);
  const outbound = new Outbound({ hosts });
  const lease = engine.lease("webhooks");
  const sender = new WebhookSender({ engine, clock, timers, random, log, outbound, seal, lease });
  return { seal, outbound, sender, wake: () => sender.wake() };
}

function readHosts(texts: readonly string[]): AllowedHosts {
  try {
    return new AllowedHosts(texts);
  } catch (cause) {
    throw new SettingsError(`DEPUTE_A2A_WEBHOOK_HOSTS: ${(cause as Error).message}`, { cause });
  }
}
