import { type ConnectRouter, createClient } from "@connectrpc/connect";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import type { ServiceDeps } from "@depute/service";
import type { TasksContext } from "../handlers/context.ts";
import { WakeUps } from "../wake-ups.ts";
import { Approvals } from "./approvals.ts";
import { EXECUTION_TOPIC, type ExecutionBook } from "./book.ts";
import type { ExecutionsContext } from "./context.ts";
import { executionJudge } from "./judge.ts";
import { executionService } from "./service.ts";
import { ExecutionTimekeeper } from "./timekeeper.ts";
import { verificationErrands } from "./verifications.ts";

export { ExecutionBook } from "./book.ts";
export { ExecutionService };

/** Executions at work: their times are enforced, and others are told what they have to know. */
export interface Executions {
  readonly routes: (router: ConnectRouter) => void;
  readonly timekeeper: ExecutionTimekeeper;
  /** Ends background work. To be called before the task engine is closed. */
  close(): Promise<void>;
}

/** @param book observes the task engine already, which may have gone on before this is called */
export function openExecutions(
  { bus, connect, log, timers }: ServiceDeps,
  tasks: TasksContext,
  book: ExecutionBook,
): Executions {
  const wakeUps = new WakeUps(bus, EXECUTION_TOPIC);
  const approvals = new Approvals(tasks, connect("verifier"), log);
  const context: ExecutionsContext = {
    tasks,
    book,
    approvals,
    offers: createClient(OfferService, connect("registry")),
    results: createClient(ResultService, connect("verifier")),
    wakeUps,
  };
  const { errands, outbox } = verificationErrands(context, log);
  book.add(errands);
  book.add(approvals.errands);
  tasks.judges.push(executionJudge(context));
  const timekeeper = new ExecutionTimekeeper({ engine: tasks.engine, book, timers, log });
  approvals.start();
  outbox.start();
  timekeeper.start();
  return {
    timekeeper,
    routes: (router) => router.service(ExecutionService, executionService(context)),
    async close() {
      await Promise.all([approvals.close(), outbox.close(), timekeeper.close()]);
      wakeUps.close();
    },
  };
}
