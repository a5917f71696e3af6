import { ArtifactService } from "@depute/contracts/depute/tasks/v1/artifact_service_pb";
import { ContextService } from "@depute/contracts/depute/tasks/v1/context_service_pb";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { BOUNDS_OPERATORS, defineService, defineSettings } from "@depute/service";
import { artifactService } from "./core/handlers/artifact-service.ts";
import { contextService } from "./core/handlers/context-service.ts";
import { taskService } from "./core/handlers/task-service.ts";
import { workerService } from "./core/handlers/worker-service.ts";
import { openRuntime } from "./core/runtime.ts";
import { openCallbackKey } from "./executions/errands/callback-key.ts";
import { ExecutionBook, ExecutionService, openExecutions } from "./executions/index.ts";
import { MessageService, openCap } from "./messages/index.ts";
import { openPushDelegates } from "./push/index.ts";
import { openSessions, SessionService } from "./sessions/index.ts";
import { TABLES } from "./tables.ts";

const CAP = "Tasks: CAP";

const settings = defineSettings({
  tasksPollInterval: {
    type: "duration",
    default: "2s",
    help: "how often a stream looks for events or work when no wake-up comes",
    group: "Tasks",
  },
  tasksStreamHeartbeat: {
    type: "duration",
    default: "30s",
    help: "silence after which a stream of events or of work says that it is alive; 0s for never",
    group: "Tasks",
  },
  tasksMaxDepth: { type: "int", default: 8, min: 0, max: 64, help: "tasks above a task", group: "Tasks" },
  tasksMaxChildren: {
    type: "int",
    default: 100,
    min: 0,
    max: 10_000,
    help: "parts that one task may ever have",
    group: "Tasks",
  },
  tasksMaxOpenInTree: {
    type: "int",
    default: 1000,
    min: 0,
    max: 10_000,
    help: "tasks below one root that have not ended",
    group: "Tasks",
  },
  tasksRetention: {
    type: "duration",
    default: "720h",
    help: "how long a task is kept whole after its end",
    group: "Tasks",
  },
  tasksTombstoneRetention: {
    type: "duration",
    default: "1440h",
    help: "how long it is known after that that it was there",
    group: "Tasks",
  },
  tasksContextMemory: {
    type: "int",
    default: 67_108_864,
    min: 0,
    help: "bytes of contexts that may not be persisted, held in memory",
    group: "Tasks",
  },
  tasksReviewTimeout: {
    type: "duration",
    default: "24h",
    help: "how long an overseer has for a result; then the task fails",
    group: "Tasks",
  },
  tasksReviewEscalation: {
    type: "list",
    default: [],
    help: "principals that may decide on held results, too, when half of that time is over; CAP's orchestrator may",
    group: "Tasks",
  },
  // The registry reads these two, too.
  boundsOperators: BOUNDS_OPERATORS,
  orchestratorPrincipals: {
    type: "list",
    default: [],
    help: "principals that act as CAP's `orchestrator`",
    group: "Registry",
  },
  userPrincipals: {
    type: "list",
    default: [],
    help: "principals that act as CAP's `user`",
    group: CAP,
  },
  executionsCallbackHosts: {
    type: "list",
    default: [],
    help:
      "hosts that receipts are sent to where a request names an address for them, as host or host:port, with private: before " +
      "names of private addresses; empty: none are sent",
    group: "Executions",
  },
  executionsRetention: {
    type: "duration",
    default: "2160h",
    help: "how long an execution and its receipts are kept after its end; a day at least",
    group: "Executions",
  },
  executionsRejectedRetention: {
    type: "duration",
    default: "72h",
    help: "how long a rejected request and its receipt are kept; a day at least",
    group: "Executions",
  },
  executionsVerificationTimeout: {
    type: "duration",
    default: "168h",
    help: "how long the verification of a completed execution is waited for; then the money goes back to the buyer",
    group: "Executions",
  },
  capPlainApproval: {
    type: "bool",
    default: false,
    help: "whether an overseer's plain message to the delegator approves a result, as in CAP's example",
    group: CAP,
  },
  capRefuseHeldResults: {
    type: "bool",
    default: false,
    help: "whether a plain message that carries a result which waits for its overseer is refused; it is marked otherwise",
    group: CAP,
  },
  capErrorActions: {
    type: "list",
    default: [],
    help: "what becomes of a task by a code of CAP's error_response, other than its table says: 502=reassign",
    group: CAP,
  },
  capTaskTimeout: {
    type: "duration",
    default: "24h",
    help: "how long a task that was delegated by a message may take",
    group: CAP,
  },
  tasksOutboundHosts: {
    type: "list",
    default: [],
    help:
      "hosts of agents' own NEKTE endpoints that are called with their work, as host or host:port, with private: before " +
      "names of private addresses; empty: none is",
    group: "Tasks",
  },
  tasksOutboundCredentials: {
    type: "string",
    default: "",
    help: 'JSON file of {"bearer": secret} or {"apikey": secret} for such endpoints, by their origins; empty: none',
    group: "Tasks",
  },
  tasksPushCapacity: {
    type: "int",
    default: 64,
    min: 1,
    max: 10_000,
    help: "tasks at agents' own endpoints at once",
    group: "Tasks",
  },
  tasksPushPerAgent: {
    type: "int",
    default: 16,
    min: 1,
    max: 1000,
    help: "of these, for one agent",
    group: "Tasks",
  },
  aspStrictIds: {
    type: "bool",
    default: true,
    help: "whether ids of ASP sessions and messages have to be UUIDv7; false takes any of that shape",
    group: "ASP sessions",
  },
  aspMessageRates: {
    type: "list",
    default: ["60", "120", "300", "600", "1200"],
    help: "messages a minute that an agent may send, for the levels of trust 0 to 4; a minute's may come at once",
    group: "ASP sessions",
  },
});

/** The tasks service: life cycle, event log, workers. */
export const tasks = defineService({
  name: "tasks",
  settings,
  descriptors: [
    TaskService,
    WorkerService,
    ContextService,
    ArtifactService,
    SessionService,
    MessageService,
    ExecutionService,
  ],

  async start(deps, settings) {
    const { bus, clock } = deps;
    const book = new ExecutionBook({ bus, clock, verificationMs: settings.executionsVerificationTimeout });
    const options = {
      pollMs: settings.tasksPollInterval,
      streamHeartbeatMs: settings.tasksStreamHeartbeat,
      treeLimits: {
        maxDepth: settings.tasksMaxDepth,
        maxChildren: settings.tasksMaxChildren,
        maxOpen: settings.tasksMaxOpenInTree,
      },
      contextMemoryBytes: settings.tasksContextMemory,
      retentionMs: settings.tasksRetention,
      tombstoneMs: settings.tasksTombstoneRetention,
      reviewTimeoutMs: settings.tasksReviewTimeout,
      reviewEscalation: [...new Set([...settings.tasksReviewEscalation, ...settings.orchestratorPrincipals])],
      boundsOperators: settings.boundsOperators,
    };
    const { context, close } = await openRuntime(deps, options, {
      tables: TABLES,
      keys: { callback: openCallbackKey(deps.dataDir).publicKey },
      observers: [(tx, change) => book.observe(tx, change)],
    });
    const executions = openExecutions(deps, context, book, {
      callbackHosts: settings.executionsCallbackHosts,
      retentionMs: settings.executionsRetention,
      rejectedRetentionMs: settings.executionsRejectedRetention,
    });
    const push = await openPushDelegates(deps, context, {
      hosts: settings.tasksOutboundHosts,
      credentialsFile: settings.tasksOutboundCredentials,
      capacity: settings.tasksPushCapacity,
      perAgent: settings.tasksPushPerAgent,
    });
    const cap = openCap(deps, context, {
      users: settings.userPrincipals,
      orchestrators: settings.orchestratorPrincipals,
      plainApproval: settings.capPlainApproval,
      refuseHeldResults: settings.capRefuseHeldResults,
      taskTimeoutMs: settings.capTaskTimeout,
      errorActions: settings.capErrorActions,
      retentionMs: settings.tasksRetention,
    });
    const sessions = await openSessions(
      deps,
      {
        pollMs: settings.tasksPollInterval,
        strictIds: settings.aspStrictIds,
        messageRates: settings.aspMessageRates,
      },
      context,
    ).catch(async (error: unknown) => {
      // What is open would keep the process alive after the refusal.
      await cap.close();
      await Promise.all([executions.close(), push.close()]);
      await close();
      throw error;
    });
    return {
      routes(router) {
        sessions.routes(router);
        executions.routes(router);
        cap.routes(router);
        router.service(TaskService, taskService(context));
        router.service(WorkerService, workerService(context));
        router.service(ContextService, contextService(context));
        router.service(ArtifactService, artifactService(context));
      },
      async close() {
        await cap.close();
        // Sessions first: the work that they delegate is a task.
        await Promise.all([sessions.close(), executions.close(), push.close()]);
        await close();
      },
    };
  },
});
