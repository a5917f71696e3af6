import { AgentChangeKind } from "@depute/contracts/depute/registry/v1/agent_service_pb";
import { DeadlineLoop, type Logger } from "@depute/service";
import { announce, type RegistryContext } from "./context.ts";
import { findAgent } from "./store/agents.ts";
import { endedLeases, markEnded } from "./store/leases.ts";
import { writeLastUp } from "./store/registry-state.ts";

/** How often leases are looked at, milliseconds. */
const LOOK_EVERY_MS = 1_000;
/** How often the registry writes down that it runs, milliseconds. */
const MARK_EVERY_MS = 10_000;
/** Leases told of in one transaction. */
const BATCH = 200;

/** Looks at leases while the registry runs. */
export interface LeaseWatch {
  /** Waits for what is under way, and marks the time. */
  stop(): Promise<void>;
}

/**
 * Tells watchers of leases that ran out. Discovery does not wait for it: that an agent is lost is a comparison of times
 * (rules/liveness.ts); this only writes it into the log of changes, at most a second later.
 */
export function startLeaseWatch(registry: RegistryContext, log: Logger): LeaseWatch {
  let markedAt = registry.clock.now();
  const loop = new DeadlineLoop({
    clock: registry.clock,
    timers: registry.timers,
    log,
    what: "leases were not looked at",
    maxWaitMs: LOOK_EVERY_MS,
    async look() {
      await tellOfEnded(registry);
      const now = registry.clock.now();
      if (now - markedAt < MARK_EVERY_MS) return;
      markedAt = now;
      await registry.store.write((tx) => writeLastUp(tx, now));
    },
  });
  loop.start(LOOK_EVERY_MS);
  return {
    async stop() {
      await loop.close();
      await registry.store.write((tx) => writeLastUp(tx, registry.clock.now()));
    },
  };
}

/** Writes LOST for each lease that ended, in batches, until none is left. */
export async function tellOfEnded(registry: RegistryContext): Promise<void> {
  const ended = () =>
    registry.store.read(async (tx) => endedLeases(tx, (await registry.guard.view(tx)).asOf, BATCH));
  while ((await ended()).length > 0) {
    await registry.store.write(async (tx) => {
      // Looked up again: an agent may have been heard of between the two transactions.
      for (const id of await endedLeases(tx, (await registry.guard.view(tx)).asOf, BATCH)) {
        await markEnded(tx, id);
        const agent = await findAgent(tx, id);
        if (agent !== undefined) await announce(registry, tx, AgentChangeKind.LOST, agent.record);
      }
    });
  }
}
