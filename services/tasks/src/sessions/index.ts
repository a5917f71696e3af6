import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import { type ServiceDeps, type Settings, SharedWork, WakeUps } from "@depute/service";
import { openStore } from "@depute/store";
import { defineModule, type OpenModule, type TaskEngine } from "../core/index.ts";
import { Agents } from "./engine/agents.ts";
import { SESSION_TOPIC, SessionEngine } from "./engine/engine.ts";
import { OutcomeReporter } from "./engine/outcomes.ts";
import { MessageRates, readRates } from "./engine/rates.ts";
import { SessionTimekeeper } from "./engine/timekeeper.ts";
import { Callers } from "./handlers/callers.ts";
import { sessionService } from "./handlers/session-service.ts";
import { openSealKey, Transcripts } from "./handlers/transcripts.ts";
import { SESSION_SETTINGS } from "./settings.ts";
import { SESSION_MIGRATIONS } from "./store/migrations.ts";
import { delegatedWork } from "./work/delegated-work.ts";

/**
 * The module of ASP sessions. Sessions have their own store, so that a new message does not wait for transactions of
 * tasks.
 */
export const sessions = defineModule({
  name: "sessions",
  settings: SESSION_SETTINGS,
  migrations: [],
  open: openSessions,
});

/** @throws SettingsError */
async function openSessions(
  deps: ServiceDeps,
  tasks: TaskEngine,
  settings: Settings<typeof SESSION_SETTINGS>,
): Promise<OpenModule> {
  const { log, clock, timers, bus, authority, stopping, connect } = deps;
  const perMinute = readRates(settings.aspMessageRates);
  const sealKey = await openSealKey(deps.keys);
  const store = await openStore({
    ...deps.storeAt("sessions", { "session-seal": sealKey.principal.id }),
    migrations: SESSION_MIGRATIONS,
    onError: (err, message) => log.error({ err }, message),
  });
  const sharedWork = new SharedWork({ service: "sessions", store, bus, clock, timers, log });
  const engine = new SessionEngine({ store, bus, clock, strictIds: settings.aspStrictIds });
  const wakeUps = new WakeUps(bus, SESSION_TOPIC);
  const registry = connect("registry");
  const reporter = new OutcomeReporter(registry);
  const timekeeper = new SessionTimekeeper({
    engine,
    reporter,
    timers,
    log,
    lease: sharedWork.lease("times"),
  });
  const work = delegatedWork({ engine, tasks, clock, timers, log, lease: sharedWork.lease("works") });
  engine.onWork(() => work.wake());
  const service = sessionService({
    engine,
    agents: new Agents(registry),
    callers: new Callers({ authority, engine }),
    rates: new MessageRates(perMinute, clock, store),
    transcripts: new Transcripts({ engine, verifier: connect("verifier"), keypair: sealKey, timers }),
    tasks,
    clock,
    timers,
    wakeUps,
    pollMs: settings.tasksPollInterval,
    stopping,
  });
  return {
    routes: (router) => router.service(SessionService, service),
    leases: () => sharedWork.held.map((name) => `sessions/${name}`),
    start() {
      timekeeper.start();
      work.start();
    },
    async close() {
      await Promise.all([timekeeper.close(), work.close()]);
      wakeUps.close();
      await sharedWork.close();
      await store.close();
    },
  };
}

export { SESSION_MIGRATIONS } from "./store/migrations.ts";
