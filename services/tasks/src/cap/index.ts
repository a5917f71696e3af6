import type { ConnectRouter } from "@connectrpc/connect";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { ServiceDeps } from "@depute/service";
import type { TasksContext } from "../handlers/context.ts";
import { WakeUps } from "../wake-ups.ts";
import type { CapContext, CapSettings } from "./context.ts";
import { Participants } from "./participants.ts";
import { INBOX_TOPIC } from "./post.ts";
import { messageService } from "./service.ts";

export { MessageService };

export interface CapOptions extends CapSettings {
  /** Principals that act as `user`. */
  readonly users: readonly string[];
  /** Principals that act as `orchestrator`. */
  readonly orchestrators: readonly string[];
}

/** CAP's messages at work. */
export interface Cap {
  readonly context: CapContext;
  readonly routes: (router: ConnectRouter) => void;
  close(): void;
}

/** Opens CAP's messages over the task engine, in whose store they are kept. */
export function openCap(
  { bus }: Pick<ServiceDeps, "bus">,
  tasks: TasksContext,
  { users, orchestrators, ...settings }: CapOptions,
): Cap {
  const { authority, dependencies, clock } = tasks;
  const inboxWakeUps = new WakeUps(bus, INBOX_TOPIC);
  const context: CapContext = {
    tasks,
    settings,
    inboxWakeUps,
    participants: new Participants({ authority, agents: dependencies.agents, clock, users, orchestrators }),
  };
  return {
    context,
    routes: (router) => router.service(MessageService, messageService(context)),
    close: () => inboxWakeUps.close(),
  };
}
