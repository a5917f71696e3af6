import type { ConnectRouter } from "@connectrpc/connect";
import { MessageService } from "@depute/contracts/depute/tasks/v1/message_service_pb";
import type { ServiceDeps } from "@depute/service";
import { WakeUps } from "../core/engine/wake-ups.ts";
import type { TasksContext } from "../core/handlers/context.ts";
import { type CapContext, type CapSettings, Told } from "./context.ts";
import { Notices } from "./notices.ts";
import { Participants } from "./participants.ts";
import { INBOX_TOPIC } from "./post.ts";
import { MessagePurger } from "./purger.ts";
import { readActions } from "./rules/error-actions.ts";
import { messageService } from "./service.ts";

export { MessageService };

export interface CapOptions extends Omit<CapSettings, "actionOf"> {
  /** What becomes of tasks by codes, where that is not what the table says: `502=reassign`. */
  readonly errorActions: readonly string[];
  /** How long messages are kept after the last one of their lineage, milliseconds. */
  readonly retentionMs: number;
  /** Principals that act as `user`. */
  readonly users: readonly string[];
  /** Principals that act as `orchestrator`. */
  readonly orchestrators: readonly string[];
}

/** CAP's messages at work. */
export interface Cap {
  readonly context: CapContext;
  readonly purger: MessagePurger;
  readonly routes: (router: ConnectRouter) => void;
  close(): Promise<void>;
}

/** Opens CAP's messages over the task engine, in whose store they are kept. */
export function openCap(
  { bus, log }: Pick<ServiceDeps, "bus" | "log">,
  tasks: TasksContext,
  { users, orchestrators, errorActions, retentionMs, ...settings }: CapOptions,
): Cap {
  const { authority, dependencies, clock } = tasks;
  const inboxWakeUps = new WakeUps(bus, INBOX_TOPIC);
  const context: CapContext = {
    tasks,
    settings: { ...settings, actionOf: readActions(errorActions) },
    told: new Told(),
    inboxWakeUps,
    participants: new Participants({ authority, agents: dependencies.agents, clock, users, orchestrators }),
  };
  const notices = new Notices(context);
  tasks.engine.observe((tx, change) => notices.observe(tx, change));
  tasks.oversight.listen(notices);
  const { store } = tasks.engine;
  const purger = new MessagePurger({ store, clock, timers: tasks.timers, log, retentionMs });
  purger.start();
  return {
    context,
    purger,
    routes: (router) => router.service(MessageService, messageService(context)),
    async close() {
      await purger.close();
      inboxWakeUps.close();
    },
  };
}
