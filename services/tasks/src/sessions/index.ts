import type { ConnectRouter } from "@connectrpc/connect";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import type { ServiceDeps } from "@depute/service";
import { openStore } from "@depute/store";
import { WakeUps } from "../core/engine/wake-ups.ts";
import type { TasksContext } from "../core/handlers/context.ts";
import { Agents } from "./engine/agents.ts";
import { SESSION_TOPIC, SessionEngine } from "./engine/engine.ts";
import { OutcomeReporter } from "./engine/outcomes.ts";
import { MessageRates, readRates } from "./engine/rates.ts";
import { SessionTimekeeper } from "./engine/timekeeper.ts";
import { Callers } from "./handlers/callers.ts";
import { sessionService } from "./handlers/session-service.ts";
import { openSealKey, Transcripts } from "./handlers/transcripts.ts";
import { SESSION_MIGRATIONS } from "./store/migrations.ts";
import { delegatedWork } from "./work/delegated-work.ts";

export { SessionService };

/** ASP sessions at work: their store is open, their time limits are enforced. */
export interface Sessions {
  readonly routes: (router: ConnectRouter) => void;
  /** Ends background work and closes the store. */
  close(): Promise<void>;
}

export interface SessionsSettings {
  /** Milliseconds between looks of a stream that nothing wakes. */
  readonly pollMs: number;
  /** Whether ids have to be UUIDv7. */
  readonly strictIds: boolean;
  /** Messages a minute, by level of trust, as the setting has them. */
  readonly messageRates: readonly string[];
}

/**
 * Opens the sessions on the files of `dataDir`.
 *
 * @param tasks the task engine: delegated work is a task
 * @throws SettingsError
 */
export async function openSessions(
  deps: ServiceDeps,
  { pollMs, strictIds, messageRates }: SessionsSettings,
  tasks: TasksContext,
): Promise<Sessions> {
  const { log, clock, timers, bus, authority, stopping, dataDir } = deps;
  const rates = new MessageRates(readRates(messageRates), clock);
  const sealKey = openSealKey(dataDir);
  const store = await openStore({
    ...deps.storeAt("sessions", { "session-seal": sealKey.principal.id }),
    migrations: SESSION_MIGRATIONS,
    onError: (err, what) => log.error({ err }, what),
  });
  const engine = new SessionEngine({ store, bus, clock, strictIds });
  const wakeUps = new WakeUps(bus, SESSION_TOPIC);
  const registry = deps.connect("registry");
  const reporter = new OutcomeReporter(registry);
  const timekeeper = new SessionTimekeeper({ engine, reporter, timers, log });
  timekeeper.start();
  const agents = new Agents(registry);
  const work = delegatedWork({ engine, tasks, timers, log });
  engine.onWork(() => work.wake());
  work.start();
  const callers = new Callers({ authority, engine });
  const transcripts = new Transcripts({
    engine,
    verifier: deps.connect("verifier"),
    keypair: sealKey,
  });
  const service = sessionService({
    engine,
    agents,
    callers,
    rates,
    transcripts,
    tasks,
    clock,
    timers,
    wakeUps,
    pollMs,
    stopping,
  });
  return {
    routes: (router) => router.service(SessionService, service),
    async close() {
      await Promise.all([timekeeper.close(), work.close()]);
      wakeUps.close();
      await store.close();
    },
  };
}
