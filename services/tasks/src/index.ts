import { TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { defineService, defineSettings } from "@depute/service";
import { taskService } from "./handlers/task-service.ts";
import { workerService } from "./handlers/worker-service.ts";
import { openRuntime } from "./runtime.ts";

const settings = defineSettings({
  tasksPollInterval: {
    type: "duration",
    default: "2s",
    help: "how often a stream looks for events or work when no wake-up comes",
    group: "Tasks",
  },
});

/** The tasks service: life cycle, event log, workers. */
export const tasks = defineService({
  name: "tasks",
  settings,
  descriptors: [TaskService, WorkerService],

  async start(deps, { tasksPollInterval }) {
    const { context, close } = await openRuntime(deps, tasksPollInterval);
    return {
      routes(router) {
        router.service(TaskService, taskService(context));
        router.service(WorkerService, workerService(context));
      },
      close,
    };
  },
});
