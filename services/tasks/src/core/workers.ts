import { createClient } from "@connectrpc/connect";
import { WorkerService } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Authority, createDirectTransport, LOCAL_PRINCIPAL } from "@depute/service";
import type { TasksContext } from "./handlers/context.ts";
import { workerService } from "./handlers/worker-service.ts";
import type { WorkerQueue } from "./port.ts";
import { assignmentOf, claim } from "./queue/claim.ts";
import { agentsWithWork, heldBy } from "./store/queue-rows.ts";
import { readTask } from "./store/task-rows.ts";

/** The authority for workers in this process. It identifies every caller as the platform itself. */
const OWN: Authority = {
  identify: async () => ({ principal: LOCAL_PRINCIPAL, local: true, organization: "" }),
  authorise: async () => ({ principal: LOCAL_PRINCIPAL, local: true, organization: "", blocks: [] }),
};

/** Returns the queue for workers in this process. The same handlers serve these workers and all other workers. */
export function ownWorkers(tasks: TasksContext): WorkerQueue {
  const { engine, contextMemory, clock, timers } = tasks;
  const service = workerService({ ...tasks, authority: OWN });
  const transport = createDirectTransport({
    clock,
    timers,
    routes: (router) => router.service(WorkerService, service),
  });
  return {
    calls: createClient(WorkerService, transport),
    agentsWithWork: (afterAgentId, limit) =>
      engine.store.read((tx) => agentsWithWork(tx, afterAgentId, engine.clock.now(), limit)),
    take: (worker, limit) => claim(engine, worker, limit, contextMemory),
    heldBy: (holder) =>
      contextMemory.using(() =>
        engine.store.read(async (tx) => {
          const nowMs = engine.clock.now();
          const assignments = [];
          for (const taskId of await heldBy(tx, holder)) {
            const record = await readTask(tx, taskId);
            if (record !== undefined) {
              assignments.push(await assignmentOf(tx, record, contextMemory, nowMs));
            }
          }
          return assignments;
        }),
      ),
  };
}
