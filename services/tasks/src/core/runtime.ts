import { BoundsOperators, type ServiceDeps } from "@depute/service";
import { type Migrations, openStore } from "@depute/store";
import { openOversight } from "../reviews/index.ts";
import { ContextKeeper } from "./contexts/context-keeper.ts";
import { ContextMemory } from "./contexts/context-memory.ts";
import { connectDependencies } from "./dependencies.ts";
import { delegationEnds } from "./engine/delegation-ends.ts";
import { Engine, type TaskObserver } from "./engine/engine.ts";
import { Purger } from "./engine/purger.ts";
import { RevocationFollower } from "./engine/revocations.ts";
import { SharedReads } from "./engine/shared-reads.ts";
import { Timekeeper } from "./engine/timekeeper.ts";
import { ASSIGNMENT_TOPIC, TASK_TOPIC, WakeUps } from "./engine/wake-ups.ts";
import type { TasksContext } from "./handlers/context.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import type { TreeLimits } from "./rules/tree.ts";

/** The task engine at work: its store is open, its limits are enforced, revocations are followed. */
export interface Runtime {
  readonly context: TasksContext;
  readonly timekeeper: Timekeeper;
  readonly purger: Purger;
  readonly contextKeeper: ContextKeeper;
  /** Ends background work and closes the store. */
  close(): Promise<void>;
}

/** Each costs about a kilobyte beside its data. */
const MAX_CONTEXTS_IN_MEMORY = 10_000;

/** What the engine is set to. */
export interface RuntimeSettings {
  /** Milliseconds between looks of a stream that nothing wakes. */
  readonly pollMs: number;
  /** Milliseconds of silence after which a stream says that it is alive; 0 for never. */
  readonly streamHeartbeatMs: number;
  readonly treeLimits: TreeLimits;
  /** Bytes of contexts that may not be persisted, held in memory at most. */
  readonly contextMemoryBytes: number;
  /** How long a task is kept whole after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long it is known after that that it was there, milliseconds. */
  readonly tombstoneMs: number;
  /** How long an overseer has for a result, milliseconds. */
  readonly reviewTimeoutMs: number;
  /** Principals that may decide as well when half of that is over. */
  readonly reviewEscalation: readonly string[];
  /** Principals that may widen agents' limits. */
  readonly boundsOperators: readonly string[];
}

/** What the modules beside the engine have in its store, and hear of it. */
export interface Parts {
  /** The tables of the store, the engine's among them. */
  readonly tables: Migrations;
  /** Fingerprints of the keys that those tables depend on. */
  readonly keys: Readonly<Record<string, string>>;
  /** Told of every change of a task in its transaction, from the first on. */
  readonly observers?: readonly TaskObserver[];
}

/** Opens the engine on the files of `dataDir`. */
export async function openRuntime(
  deps: ServiceDeps,
  {
    pollMs,
    streamHeartbeatMs,
    treeLimits,
    boundsOperators,
    contextMemoryBytes,
    retentionMs,
    tombstoneMs,
    ...reviewing
  }: RuntimeSettings,
  { tables, keys, observers = [] }: Parts,
): Promise<Runtime> {
  const { log, clock, timers, bus, authority, stopping } = deps;
  const store = await openStore({
    ...deps.storeAt("tasks", keys),
    migrations: tables,
    onError: (err, what) => log.error({ err }, what),
  });
  const engine = new Engine({ store, bus, clock, timers, random: Math.random });
  for (const observer of observers) engine.observe(observer);
  const dependencies = connectDependencies(deps);
  const taskWakeUps = new WakeUps(bus, TASK_TOPIC);
  const assignmentWakeUps = new WakeUps(bus, ASSIGNMENT_TOPIC);
  const timekeeper = new Timekeeper({ engine, timers, log });
  const follower = new RevocationFollower({ engine, revocations: dependencies.revocations, timers, log });
  const contextMemory = new ContextMemory({
    clock,
    timers,
    maxBytes: contextMemoryBytes,
    maxContexts: MAX_CONTEXTS_IN_MEMORY,
  });
  const dispatcher = new Dispatcher({
    engine,
    memory: contextMemory,
    timers,
    pollMs,
    onError: (err) => log.warn({ err }, "work could not be handed out"),
  });
  const reads = new SharedReads({
    read: (taskId, after, limit) => engine.events(taskId, after, limit),
    wakeUps: taskWakeUps,
    clock,
    maxAgeMs: pollMs / 2,
  });
  const purger = new Purger({ store, clock, timers, log, retentionMs, tombstoneMs });
  const contextKeeper = new ContextKeeper({ engine, memory: contextMemory, timers, log, tombstoneMs });
  const running = openOversight(deps, {
    engine,
    reviews: dependencies.reviews,
    timeoutMs: reviewing.reviewTimeoutMs,
    escalation: reviewing.reviewEscalation,
  });
  const { oversight } = running;
  engine.observe((tx, change) => oversight.observe(tx, change));
  const ends = delegationEnds({ store, delegations: dependencies.delegations, timers, log });
  engine.onDelegationEnd(() => ends.wake());
  await contextKeeper.noteLost();
  ends.start();
  running.start();
  purger.start();
  contextKeeper.start();
  timekeeper.start();
  follower.start();
  return {
    context: {
      engine,
      authority,
      dependencies,
      clock,
      timers,
      log,
      taskWakeUps,
      assignmentWakeUps,
      dispatcher,
      pollMs,
      streamHeartbeatMs,
      treeLimits,
      boundsOperators: new BoundsOperators(boundsOperators, deps.auth),
      contextMemory,
      oversight,
      reads,
      judges: [],
      stopping,
    },
    timekeeper,
    purger,
    contextKeeper,
    async close() {
      await Promise.all([
        timekeeper.close(),
        follower.close(),
        purger.close(),
        contextKeeper.close(),
        ends.close(),
        running.close(),
      ]);
      dispatcher.close();
      engine.close();
      contextMemory.close();
      taskWakeUps.close();
      assignmentWakeUps.close();
      await store.close();
    },
  };
}
