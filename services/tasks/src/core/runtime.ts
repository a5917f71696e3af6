import type { ConnectRouter } from "@connectrpc/connect";
import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { BoundsOperators, type ServiceDeps, SharedWork, WakeUps } from "@depute/service";
import { openStore } from "@depute/store";
import { ContextKeeper } from "./contexts/context-keeper.ts";
import { type ContextMemory, ContextsAway } from "./contexts/context-memory.ts";
import { openContextMemory } from "./contexts/open-memory.ts";
import { connectDependencies } from "./dependencies.ts";
import { delegationEnds } from "./engine/delegation-ends.ts";
import { Engine } from "./engine/engine.ts";
import { Eraser } from "./engine/eraser.ts";
import { Purger } from "./engine/purger.ts";
import { RevocationFollower } from "./engine/revocations.ts";
import { Timekeeper } from "./engine/timekeeper.ts";
import { ASSIGNMENT_TOPIC, DELEGATOR_TOPIC, TASK_TOPIC } from "./engine/topics.ts";
import { SharedReads } from "./engine/watch.ts";
import { artifactService } from "./handlers/artifact-service.ts";
import type { TasksContext } from "./handlers/context.ts";
import { contextService } from "./handlers/context-service.ts";
import { taskService } from "./handlers/task-service.ts";
import { workerService } from "./handlers/worker-service.ts";
import type { TasksModule } from "./module.ts";
import type { TaskEngine } from "./port.ts";
import { Dispatcher } from "./queue/dispatcher.ts";
import { ReviewsSlot } from "./reviews-slot.ts";
import type { CoreSettings } from "./settings.ts";
import { CORE_MIGRATIONS } from "./store/migrations.ts";
import { recountOpenTasks } from "./store/open-task-rows.ts";
import { taskEngine } from "./task-engine.ts";
import { COUNTED_EVENTS, taskMetrics } from "./task-metrics.ts";

/** The task engine with its store open. */
export interface Core {
  /** The engine as modules see it. */
  readonly engine: TaskEngine;
  readonly routes: (router: ConnectRouter) => void;
  /** Returns the names of the leases that this process holds. Operators see these names. */
  readonly leases: () => readonly string[];
  /**
   * Starts the enforcement of deadlines, the reading of the revocation log, and the purges. Call this function after
   * every module is open.
   */
  start(): Promise<void>;
  /** Stops background work and closes the store. Call this function after every module is closed. */
  close(): Promise<void>;
  /** The internals of the engine, for tests. */
  readonly context: TasksContext;
  readonly timekeeper: Timekeeper;
  readonly purger: Purger;
  readonly contextKeeper: ContextKeeper;
}

/**
 * Opens the engine and its store, with the tables of the modules. No task changes before `start`.
 *
 * @param modules the modules with tables in the store; they open later, with this engine
 */
export async function openCore(
  deps: ServiceDeps,
  settings: CoreSettings,
  modules: readonly Pick<TasksModule, "name" | "migrations" | "keys">[],
): Promise<Core> {
  const { log, clock, timers, random, bus, authority, stopping } = deps;
  const { tasksPollInterval: pollMs } = settings;
  const keys: Record<string, string> = {};
  for (const module of modules) Object.assign(keys, await module.keys?.(deps));
  const contextMemory = await openContextMemory(deps, settings.tasksContextMemory);
  const store = await openStore({
    ...deps.storeAt("tasks", keys),
    migrations: {
      core: CORE_MIGRATIONS,
      ...Object.fromEntries(modules.map(({ name, migrations }) => [name, migrations])),
    },
    onError: (err, message) => log.error({ err }, message),
  }).catch((error: unknown) => {
    contextMemory.close();
    throw error;
  });
  await store.write(recountOpenTasks);
  const work = new SharedWork({ service: "tasks", store, bus, clock, timers, log });
  const engine = new Engine({ store, bus, clock, timers, random, quotas: deps.quotas });
  const { metricsAgentClasses: agentClasses } = settings;
  engine.observe(taskMetrics({ metrics: deps.domainMetrics, store, clock, agentClasses }), COUNTED_EVENTS);
  const dependencies = connectDependencies(deps);
  const taskWakeUps = new WakeUps(bus, TASK_TOPIC);
  const delegatorWakeUps = new WakeUps(bus, DELEGATOR_TOPIC);
  const assignmentWakeUps = new WakeUps(bus, ASSIGNMENT_TOPIC);
  const dispatcher = new Dispatcher({
    engine,
    memory: contextMemory,
    bus,
    timers,
    pollMs,
    onError: (err) => log.warn({ err }, "a dispatch failed; the next poll repeats it"),
  });
  const reads = new SharedReads({
    log: engine,
    wakeUps: taskWakeUps,
    clock,
    maxAgeMs: pollMs / 2,
  });
  const parts = { engine, dependencies, work, memory: contextMemory };
  const { timekeeper, follower, purger, contextKeeper, ends } = backgroundOf(deps, settings, parts);
  const eraser = new Eraser({ engine, store, purger, memory: contextMemory });
  const context: TasksContext = {
    engine,
    authority,
    dependencies,
    clock,
    timers,
    log,
    taskWakeUps,
    delegatorWakeUps,
    assignmentWakeUps,
    dispatcher,
    pollMs,
    streamHeartbeatMs: settings.tasksStreamHeartbeat,
    treeLimits: {
      maxDepth: settings.tasksMaxDepth,
      maxChildren: settings.tasksMaxChildren,
      maxOpen: settings.tasksMaxOpenInTree,
    },
    boundsOperators: new BoundsOperators(settings.boundsOperators, deps.auth),
    contextMemory,
    reviews: new ReviewsSlot(),
    reads,
    resultChecks: [],
    stopping,
  };
  return {
    engine: taskEngine(context, { purger, work, eraser }),
    context,
    timekeeper,
    purger,
    contextKeeper,
    leases: () => work.held,
    routes(router) {
      router.service(TaskService, taskService(context, eraser));
      router.service(WorkerService, workerService(context));
      router.service(ContextService, contextService(context));
      router.service(ArtifactService, artifactService(context));
    },
    async start() {
      // While the shared memory does not answer, no context counts as lost. A later purge repeats the check.
      await contextKeeper.noteLost().catch((error: unknown) => {
        if (!(error instanceof ContextsAway)) throw error;
        log.warn({ err: error }, "contexts that may not be persisted cannot be read");
      });
      ends.start();
      purger.start();
      contextKeeper.start();
      timekeeper.start();
      follower.start();
    },
    async close() {
      const working = [timekeeper, follower, purger, contextKeeper, ends];
      await Promise.all(working.map((each) => each.close()));
      dispatcher.close();
      engine.close();
      contextMemory.close();
      taskWakeUps.close();
      delegatorWakeUps.close();
      assignmentWakeUps.close();
      await work.close();
      await store.close();
    },
  };
}

interface BackgroundParts {
  readonly engine: Engine;
  readonly dependencies: ReturnType<typeof connectDependencies>;
  readonly work: SharedWork;
  readonly memory: ContextMemory;
}

/**
 * Creates the background work of the engine. Replicas share this work through leases, except time limits, which each
 * replica applies.
 */
function backgroundOf(
  { log, clock, timers }: ServiceDeps,
  { tasksRetention: retentionMs, tasksTombstoneRetention: tombstoneMs }: CoreSettings,
  { engine, dependencies, work, memory }: BackgroundParts,
) {
  const { store } = engine;
  const { revocations, delegations } = dependencies;
  const base = { clock, timers, log };
  const ends = delegationEnds({ store, delegations, timers, log, lease: work.lease("delegation-ends") });
  engine.onDelegationEnd(() => ends.wake());
  return {
    timekeeper: new Timekeeper({ engine, timers, log }),
    follower: new RevocationFollower({ engine, revocations, timers, log, lease: work.lease("revocations") }),
    purger: new Purger({ ...base, store, retentionMs, tombstoneMs, lease: work.lease("purge") }),
    contextKeeper: new ContextKeeper({
      ...{ ...base, engine, memory, tombstoneMs },
      lease: work.lease("contexts"),
    }),
    ends,
  };
}
