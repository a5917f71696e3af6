import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { AllowedHosts, type ServiceDeps } from "@depute/service";
import { WakeUps } from "../core/engine/wake-ups.ts";
import type { TasksContext } from "../core/handlers/context.ts";
import { EXECUTION_TOPIC, type ExecutionBook } from "./book/book.ts";
import { executionJudge } from "./book/judge.ts";
import { Approvals } from "./errands/approvals.ts";
import { openCallbackKey } from "./errands/callback-key.ts";
import { Callbacks } from "./errands/callbacks.ts";
import { verificationErrands } from "./errands/verifications.ts";
import type { ExecutionsContext } from "./handlers/context.ts";
import { executionService } from "./handlers/execution-service.ts";
import { ExecutionPurger } from "./time/purger.ts";
import { ExecutionTimekeeper } from "./time/timekeeper.ts";

export { ExecutionBook } from "./book/book.ts";
export { ExecutionService };

/** What executions are set to. */
export interface ExecutionsSettings {
  /** Hosts that receipts are sent to. */
  readonly callbackHosts: readonly string[];
  /** How long an execution is kept after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long a rejected request is, milliseconds. */
  readonly rejectedRetentionMs: number;
}

/** Executions at work: their times are enforced, and others are told what they have to know. */
export interface Executions {
  readonly routes: (router: ConnectRouter) => void;
  readonly timekeeper: ExecutionTimekeeper;
  /** Ends background work. To be called before the task engine is closed. */
  close(): Promise<void>;
}

/**
 * @param book observes the task engine already; to be called before anything else is waited for, so that it is told of nothing
 * before the errands are
 * @throws SettingsError for hosts that are none
 */
export function openExecutions(
  { bus, connect, log, timers, clock, dataDir }: ServiceDeps,
  tasks: TasksContext,
  book: ExecutionBook,
  { callbackHosts, retentionMs, rejectedRetentionMs }: ExecutionsSettings,
): Executions {
  const { store } = tasks.engine;
  const hosts = new AllowedHosts(callbackHosts);
  const key = openCallbackKey(dataDir);
  const callbacks = new Callbacks({ store, clock, timers, log, hosts, key, random: Math.random });
  const wakeUps = new WakeUps(bus, EXECUTION_TOPIC);
  const approvals = new Approvals(tasks, connect("verifier"), log);
  const context: ExecutionsContext = {
    tasks,
    book,
    approvals,
    offers: createClient(OfferService, connect("registry")),
    organizations: createClient(OrganizationService, connect("registry")),
    results: createClient(ResultService, connect("verifier")),
    wakeUps,
    callbackKey: key,
  };
  const { errands, outbox } = verificationErrands(context, log);
  book.add(errands);
  book.add(approvals.errands);
  book.add(callbacks.errands);
  tasks.judges.push(executionJudge(context));
  const timekeeper = new ExecutionTimekeeper({ engine: tasks.engine, book, timers, log });
  const purger = new ExecutionPurger({ store, clock, timers, log, retentionMs, rejectedRetentionMs });
  approvals.start();
  purger.start();
  callbacks.start();
  outbox.start();
  timekeeper.start();
  return {
    timekeeper,
    routes: (router) => router.service(ExecutionService, executionService(context)),
    async close() {
      const working = [approvals, callbacks, outbox, timekeeper, purger];
      await Promise.all(working.map((each) => each.close()));
      wakeUps.close();
    },
  };
}
