import { createClient } from "@connectrpc/connect";
import { AgentService } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DiscoveryService } from "@depute/contracts/depute/registry/v1/discovery_service_pb";
import { OfferService } from "@depute/contracts/depute/registry/v1/offer_service_pb";
import { OrganizationService } from "@depute/contracts/depute/registry/v1/organization_service_pb";
import { ExecutionService } from "@depute/contracts/depute/tasks/v1/execution_service_pb";
import { ResultService } from "@depute/contracts/depute/verifier/v1/result_service_pb";
import { VerificationService } from "@depute/contracts/depute/verifier/v1/verification_service_pb";
import { AllowedHosts, type ServiceDeps, type Settings, WakeUps } from "@depute/service";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { EXECUTION_TOPIC, ExecutionBook } from "./book/book.ts";
import { executionJudge } from "./book/judge.ts";
import type { ExecutionsContext } from "./handlers/context.ts";
import { executionService } from "./handlers/execution-service.ts";
import { Approvals } from "./outbox/approvals.ts";
import { openCallbackKey } from "./outbox/callback-key.ts";
import { Callbacks } from "./outbox/callbacks.ts";
import { verificationOutbox } from "./outbox/verifications.ts";
import { DECISIVE } from "./rules/outcome.ts";
import { EXECUTION_SETTINGS } from "./settings.ts";
import { EXECUTION_MIGRATIONS } from "./store/migrations.ts";
import { deleteExecution, endedExecutionsOf } from "./store/purge-rows.ts";
import { ExecutionPurger } from "./time/purger.ts";
import { ExecutionTimekeeper } from "./time/timekeeper.ts";

/** The module of executions: purchases on Agenta's offers. Its tables are in the tasks store. */
export const executions = defineModule({
  name: "executions",
  settings: EXECUTION_SETTINGS,
  migrations: EXECUTION_MIGRATIONS,
  keys: async ({ keys }) => ({ callback: (await openCallbackKey(keys)).publicKey }),
  open: openExecutions,
});

/** @throws SettingsError if the key `callback` cannot be opened; Error for invalid hosts of callbacks */
async function openExecutions(
  { bus, connect, log, timers, random, clock, keys, authority, stopping }: ServiceDeps,
  engine: TaskEngine,
  settings: Settings<typeof EXECUTION_SETTINGS>,
): Promise<OpenModule> {
  const { store } = engine;
  const hosts = new AllowedHosts(settings.executionsCallbackHosts);
  const key = await openCallbackKey(keys);
  const [registry, verifier] = [connect("registry"), connect("verifier")];
  const verificationMs = settings.executionsVerificationTimeout;
  const book = new ExecutionBook({ bus, clock, engine, verificationMs });
  engine.observe((tx, change) => book.observe(tx, change), DECISIVE);
  const callbacks = new Callbacks({
    store,
    clock,
    timers,
    log,
    hosts,
    key,
    random,
    lease: engine.lease("callbacks"),
  });
  const wakeUps = new WakeUps(bus, EXECUTION_TOPIC);
  const approvals = new Approvals({ clock, timers, log, connect }, engine);
  const context: ExecutionsContext = {
    engine,
    authority,
    clock,
    timers,
    pollMs: settings.tasksPollInterval,
    stopping,
    book,
    approvals,
    agents: createClient(AgentService, registry),
    discovery: createClient(DiscoveryService, registry),
    offers: createClient(OfferService, registry),
    organizations: createClient(OrganizationService, registry),
    results: createClient(ResultService, verifier),
    verification: createClient(VerificationService, verifier),
    wakeUps,
    callbackKey: key,
  };
  const { listener, outbox } = verificationOutbox(context, timers, log);
  book.listen(listener);
  book.listen(approvals.listener);
  book.listen(callbacks.listener);
  engine.checkResults(executionJudge(context));
  engine.onErase(async (tx, organization, limit) => {
    const ended = await endedExecutionsOf(tx, organization, limit);
    for (const requestId of ended) await deleteExecution(tx, requestId);
    return ended.length;
  });
  const timekeeper = new ExecutionTimekeeper({ store, clock, book, timers, log });
  const purger = new ExecutionPurger({
    store,
    clock,
    timers,
    log,
    lease: engine.lease("execution-purge"),
    retentionMs: settings.executionsRetention,
    rejectedRetentionMs: settings.executionsRejectedRetention,
  });
  const working = [approvals, callbacks, outbox, timekeeper, purger];
  return {
    routes: (router) => router.service(ExecutionService, executionService(context)),
    start() {
      for (const each of working) each.start();
    },
    async close() {
      await Promise.all(working.map((each) => each.close()));
      wakeUps.close();
    },
  };
}
