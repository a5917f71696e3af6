import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import { type ServiceDeps, type Settings, WakeUps } from "@depute/service";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { messageService } from "./handlers/message-service.ts";
import { readActions } from "./rules/error-actions.ts";
import { MESSAGE_SETTINGS } from "./settings.ts";
import { MESSAGE_MIGRATIONS } from "./store/migrations.ts";
import { eraseMessages } from "./time/erase.ts";
import { MessagePurger } from "./time/purger.ts";
import { type CapContext, NotifiedTasks } from "./work/context.ts";
import { FOLLOWED, Notices } from "./work/notices.ts";
import { Participants } from "./work/participants.ts";
import { INBOX_TOPIC } from "./work/post.ts";

/** The open CAP module. */
export interface Cap extends OpenModule {
  readonly routes: (router: ConnectRouter) => void;
  start(): void;
  readonly context: CapContext;
  readonly purger: MessagePurger;
}

/**
 * The module of CAP's messages. Its tables are in the tasks store, so that a message commits together with its effect.
 */
export const messages = defineModule({
  name: "messages",
  settings: MESSAGE_SETTINGS,
  migrations: MESSAGE_MIGRATIONS,
  open: openCap,
});

/** @throws Error if an entry of the setting `capErrorActions` is invalid */
export function openCap(
  { bus, log, connect, authority, clock, timers, stopping }: ServiceDeps,
  engine: TaskEngine,
  settings: Settings<typeof MESSAGE_SETTINGS>,
): Cap {
  const actionOf = readActions(settings.capErrorActions);
  const registry = connect("registry");
  const inboxWakeUps = new WakeUps(bus, INBOX_TOPIC);
  const context: CapContext = {
    engine,
    policy: createClient(PolicyService, registry),
    clock,
    timers,
    bus,
    pollMs: settings.tasksPollInterval,
    stopping,
    settings: {
      plainApproval: settings.capPlainApproval,
      refuseHeldResults: settings.capRefuseHeldResults,
      taskTimeoutMs: settings.capTaskTimeout,
      actionOf,
    },
    notified: new NotifiedTasks(),
    inboxWakeUps,
    participants: new Participants({
      authority,
      agents: createClient(AgentService, registry),
      clock,
      users: settings.userPrincipals,
      orchestrators: settings.orchestratorPrincipals,
    }),
  };
  const notices = new Notices(context);
  engine.observe((tx, change) => notices.observe(tx, change), FOLLOWED);
  engine.reviews.listen(notices);
  engine.onErase(eraseMessages);
  const { store } = engine;
  const purger = new MessagePurger({
    ...{ store, clock, timers, log, retentionMs: settings.tasksRetention },
    lease: engine.lease("message-purge"),
  });
  return {
    context,
    purger,
    routes: (router) => router.service(MessageService, messageService(context)),
    start: () => purger.start(),
    async close() {
      await purger.close();
      inboxWakeUps.close();
    },
  };
}
