import { BOUNDS_OPERATORS, defineSettings, type Settings } from "@depute/service";

/**
 * The interval in which a stream reads the store if no wake-up arrives. All modules that serve streams share this
 * setting.
 */
export const POLL_INTERVAL = {
  tasksPollInterval: {
    type: "duration",
    default: "2s",
    help: "how often a stream reads the store if no wake-up arrives",
    group: "Tasks",
  },
} as const;

/** Retention times of tasks. Modules whose rows belong to tasks read these settings too. */
export const RETENTION = {
  tasksRetention: {
    type: "duration",
    default: "720h",
    help: "how long the store keeps a whole task after its end",
    group: "Tasks",
  },
} as const;

/** The principals of CAP's orchestrator. Several modules and the registry read this setting. */
export const ORCHESTRATORS = {
  orchestratorPrincipals: {
    type: "list",
    default: [],
    help: "principals that act as CAP's `orchestrator`",
    group: "Registry",
  },
} as const;

/** The settings of the task engine. */
export const CORE_SETTINGS = defineSettings({
  ...POLL_INTERVAL,
  tasksStreamHeartbeat: {
    type: "duration",
    default: "30s",
    help: "silence after which a stream sends a heartbeat; 0s for never",
    group: "Tasks",
  },
  tasksMaxDepth: {
    type: "int",
    default: 8,
    min: 0,
    max: 64,
    help: "maximum number of tasks above a task",
    group: "Tasks",
  },
  tasksMaxChildren: {
    type: "int",
    default: 100,
    min: 0,
    max: 10_000,
    help: "maximum number of children that a task may have in total, including ended children",
    group: "Tasks",
  },
  tasksMaxOpenInTree: {
    type: "int",
    default: 1000,
    min: 0,
    max: 10_000,
    help: "maximum number of open tasks below one root",
    group: "Tasks",
  },
  ...RETENTION,
  tasksTombstoneRetention: {
    type: "duration",
    default: "1440h",
    help: "how long the store keeps the tombstone of a purged task",
    group: "Tasks",
  },
  tasksContextMemory: {
    type: "int",
    default: 67_108_864,
    min: 0,
    help: "maximum bytes of contexts that may not be persisted, in the memory of the process, or in Redis for all replicas",
    group: "Tasks",
  },
  metricsAgentClasses: {
    type: "list",
    default: [],
    help: "ids of agents that metrics of the queue name; all other agents count as `other`, and instances count as their agent",
    group: "What is seen",
  },
  // The registry also reads this setting.
  boundsOperators: BOUNDS_OPERATORS,
});

export type CoreSettings = Settings<typeof CORE_SETTINGS>;
