import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeadlineLoop, type Logger } from "@depute/service";
import { type RegistryContext, recordChange } from "./context.ts";
import { findAgent } from "./store/agents.ts";
import { endedLeases, markEnded } from "./store/leases.ts";
import { writeLastUp } from "./store/registry-state.ts";

/** Milliseconds between checks for ended leases of agents. */
const CHECK_INTERVAL_MS = 1_000;
/** Milliseconds between two writes of the time at which the registry last ran. */
export const MARK_INTERVAL_MS = 10_000;
/** Maximum number of leases that one transaction marks as ended. */
const BATCH_SIZE = 200;

/** The periodic check of agents' leases while the registry runs. An agent with a current lease counts as live. */
export interface LeaseWatch {
  /** Waits for the current check, and then writes the time at which the registry last ran. */
  stop(): Promise<void>;
}

/**
 * Notifies watchers of ended leases. Within about a second after a lease ends, the watch appends a change to the log;
 * later while the removal guard holds. Discovery does not depend on this loop, because discovery compares times
 * (rules/agent.ts).
 */
export function startLeaseWatch(registry: RegistryContext, log: Logger): LeaseWatch {
  let markedAt = registry.clock.now();
  const loop = new DeadlineLoop({
    clock: registry.clock,
    timers: registry.timers,
    log,
    failureMessage: "the check of ended leases failed",
    maxWaitMs: CHECK_INTERVAL_MS,
    async runDueWork() {
      await appendLostChanges(registry);
      const now = registry.clock.now();
      if (now - markedAt < MARK_INTERVAL_MS) return;
      markedAt = now;
      await registry.store.write((tx) => writeLastUp(tx, now));
    },
  });
  loop.start(CHECK_INTERVAL_MS);
  return {
    async stop() {
      await loop.close();
      await registry.store.write((tx) => writeLastUp(tx, registry.clock.now()));
    },
  };
}

/** Appends the change LOST for each ended lease, in transactions of at most BATCH_SIZE leases. */
export async function appendLostChanges(registry: RegistryContext): Promise<void> {
  const findEnded = () =>
    registry.store.read(async (tx) => endedLeases(tx, (await registry.guard.view(tx)).asOf, BATCH_SIZE));
  while ((await findEnded()).length > 0) {
    await registry.store.write(async (tx) => {
      // Reads the ended leases again, because a heartbeat may have arrived between the two transactions.
      for (const id of await endedLeases(tx, (await registry.guard.view(tx)).asOf, BATCH_SIZE)) {
        await markEnded(tx, id);
        const agent = await findAgent(tx, id);
        if (agent !== undefined) await recordChange(registry, tx, AgentChangeKind.LOST, agent.record);
      }
    });
  }
}
