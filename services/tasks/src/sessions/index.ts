import type { ConnectRouter } from "@connectrpc/connect";
import { SessionService } from "@depute/contracts/depute/tasks/v1/session_service_pb";
import type { ServiceDeps } from "@depute/service";
import { openStore } from "@depute/store";
import { WakeUps } from "../wake-ups.ts";
import { Agents } from "./agents.ts";
import { Callers } from "./callers.ts";
import { SESSION_TOPIC, SessionEngine } from "./engine.ts";
import { SESSION_MIGRATIONS } from "./migrations.ts";
import { OutcomeReporter } from "./outcomes.ts";
import { sessionService } from "./service.ts";
import { SessionTimekeeper } from "./timekeeper.ts";

export { SessionService };

/** ASP sessions at work: their store is open, their time limits are enforced. */
export interface Sessions {
  readonly routes: (router: ConnectRouter) => void;
  /** Ends background work and closes the store. */
  close(): Promise<void>;
}

/**
 * Opens the sessions on the files of `dataDir`.
 *
 * @param pollMs milliseconds between looks of a stream that nothing wakes
 */
export async function openSessions(deps: ServiceDeps, pollMs: number): Promise<Sessions> {
  const { log, clock, timers, bus, authority, stopping } = deps;
  const store = await openStore({
    ...deps.storeAt("sessions"),
    migrations: SESSION_MIGRATIONS,
    onError: (err, what) => log.error({ err }, what),
  });
  const engine = new SessionEngine({ store, bus, clock });
  const wakeUps = new WakeUps(bus, SESSION_TOPIC);
  const registry = deps.connect("registry");
  const reporter = new OutcomeReporter(registry);
  const timekeeper = new SessionTimekeeper({ engine, reporter, timers, log });
  timekeeper.start();
  const agents = new Agents(registry);
  const callers = new Callers({ authority, engine });
  const service = sessionService({ engine, agents, callers, clock, timers, wakeUps, pollMs, stopping });
  return {
    routes: (router) => router.service(SessionService, service),
    async close() {
      await timekeeper.close();
      wakeUps.close();
      await store.close();
    },
  };
}
