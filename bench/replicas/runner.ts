import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Completions } from "@depute/client";
import { type CreateTaskResponse, TaskService } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type BatchCompleteAssignmentsResponse,
  type WatchAssignmentsResponse,
  WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { atPace } from "../at-pace.ts";
import { inFlight } from "../in-flight.ts";
import { bareClient } from "../tasks/bare-client.ts";

const OUTPUT = { full: fromJson(ValueSchema, { words: 3 }) };

/**
 * Runs tasks from creation to completion over several replicas. Each replica has a worker's stream of each agent.
 * Creations go to the replicas in turn.
 */
export function replicaRunner(addresses: readonly string[], agentIds: readonly string[]) {
  const replicas = addresses.map((address) => {
    const delegator = bareClient(TaskService, address);
    const worker = bareClient(WorkerService, address);
    const completeAll = worker.unary<BatchCompleteAssignmentsResponse>("BatchCompleteAssignments");
    return {
      ...{ delegator, worker, create: delegator.unary<CreateTaskResponse>("CreateTask") },
      completions: new Completions(async (requests) => (await completeAll({ requests })).outcomes),
    };
  });
  const waiting = new Map<string, () => void>();
  const early = new Set<string>();
  let creates = 0;

  /**
   * @param atOnce the number of tasks in flight, and the capacity of each worker
   * @param perSecond the rate of the creations; without it, a creation follows each completion
   * @returns tasks per second
   */
  async function run(tasks: number, atOnce: number, perSecond?: number): Promise<number> {
    const failed = Promise.withResolvers<never>();
    const streams = replicas.flatMap(({ worker, completions }) =>
      agentIds.map((agentId) => {
        const stream = worker.stream("WatchAssignments", { agentId, capacity: atOnce, begin: true });
        stream.on("error", () => {});
        stream.on("data", ({ assignment }: WatchAssignmentsResponse) => {
          const lease = assignment?.lease;
          if (lease === undefined) return;
          completions.add({ lease, output: OUTPUT }).then(() => {
            const resolve = waiting.get(lease.taskId);
            if (resolve === undefined) early.add(lease.taskId);
            else resolve();
          }, failed.reject);
        });
        return stream;
      }),
    );
    const startMs = performance.now();
    const one = async () => {
      const number = creates++;
      const replica = replicas[number % replicas.length] as (typeof replicas)[number];
      const agentId = agentIds[number % agentIds.length];
      const requestId = `${process.pid} ${number} ${startMs}`;
      const { task } = await replica.create({ requestId, draft: { agentId, description: "count words" } });
      const taskId = task?.id ?? "";
      if (!early.delete(taskId)) await new Promise<void>((resolve) => waiting.set(taskId, resolve));
      waiting.delete(taskId);
    };
    const running = perSecond === undefined ? inFlight(tasks, atOnce, one) : atPace(perSecond, tasks, one);
    // A refused completion ends the run, so that the caller stops the replicas.
    await Promise.race([running, failed.promise]);
    const seconds = (performance.now() - startMs) / 1000;
    for (const stream of streams) stream.cancel();
    return tasks / seconds;
  }
  return {
    run,
    close() {
      for (const { delegator, worker } of replicas) {
        delegator.close();
        worker.close();
      }
    },
  };
}
