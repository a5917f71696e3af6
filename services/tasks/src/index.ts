import { join } from "node:path";
import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { defineService, defineSettings } from "@depute/service";
import { openStore } from "@depute/store";
import { connectDependencies } from "./dependencies.ts";
import { Engine } from "./engine.ts";
import { taskService } from "./handlers/task-service.ts";
import { workerService } from "./handlers/worker-service.ts";
import { RevocationFollower } from "./revocations.ts";
import { MIGRATIONS } from "./store/migrations.ts";
import { Timekeeper } from "./timekeeper.ts";
import { ASSIGNMENT_TOPIC, TASK_TOPIC, WakeUps } from "./wake-ups.ts";

const settings = defineSettings({
  tasksPollInterval: {
    type: "duration",
    default: "2s",
    help: "how often a stream looks for events or work when no wake-up comes",
    group: "Tasks:",
  },
});

/** The tasks service: life cycle, event log, workers. */
export const tasks = defineService({
  name: "tasks",
  settings,
  descriptors: [TaskService, WorkerService],

  async start(deps, { tasksPollInterval: pollMs }) {
    const { log, clock, timers, bus, authority, stopping } = deps;
    const store = await openStore({
      file: join(deps.dataDir, "tasks.sqlite"),
      migrations: MIGRATIONS,
      onError: (err, what) => log.error({ err }, what),
    });
    const engine = new Engine({ store, bus, clock });
    const dependencies = connectDependencies(deps);
    const taskWakeUps = new WakeUps(bus, TASK_TOPIC);
    const assignmentWakeUps = new WakeUps(bus, ASSIGNMENT_TOPIC);
    const timekeeper = new Timekeeper({ engine, timers, log });
    const follower = new RevocationFollower({
      engine,
      revocations: dependencies.revocations,
      timers,
      log,
    });
    const context = {
      engine,
      authority,
      dependencies,
      clock,
      timers,
      taskWakeUps,
      assignmentWakeUps,
      pollMs,
      stopping,
    };
    timekeeper.start();
    follower.start();
    return {
      routes(router) {
        router.service(TaskService, taskService(context));
        router.service(WorkerService, workerService(context));
      },
      async close() {
        await Promise.all([timekeeper.close(), follower.close()]);
        taskWakeUps.close();
        assignmentWakeUps.close();
        await store.close();
      },
    };
  },
});
