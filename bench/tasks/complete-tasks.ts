import { fromJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { Completions, type Creation, Creations, connectTo, startWorker } from "@depute/client";
import {
  type BatchCreateTasksResponse,
  type CreateTaskResponse,
  TaskService,
} from "@depute/contracts/depute/tasks/v1/task_service_pb";
import {
  type BatchCompleteAssignmentsResponse,
  type Lease,
  type WatchAssignmentsResponse,
  WorkerService,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { inFlight } from "../in-flight.ts";
import { bareClient } from "./bare-client.ts";
import { AGENT, type Platform } from "./platform.ts";

/** The output of every task. */
export const OUTPUT = { full: fromJson(ValueSchema, { words: 3 }) };

/**
 * Runs tasks from creation to completion. The worker only completes tasks.
 *
 * @param handOver how the delegator creates tasks: one call for each task, or one batch for concurrent tasks
 * @param handBack how the worker completes tasks: one call for each task, one batch for concurrent tasks, or as the
 * worker of the SDK does, over the SDK's own connection
 */
export function taskRunner(
  { address }: Pick<Platform, "address">,
  handOver: "one by one" | "together" = "one by one",
  handBack: "one by one" | "together" | "by the SDK" = "together",
) {
  const delegator = bareClient(TaskService, address);
  const worker = bareClient(WorkerService, address);
  const completeAll = worker.unary<BatchCompleteAssignmentsResponse>("BatchCompleteAssignments");
  const createOne = delegator.unary<CreateTaskResponse>("CreateTask");
  const createAll = delegator.unary<BatchCreateTasksResponse>("BatchCreateTasks");
  const creations = new Creations(async (requests) => (await createAll({ requests })).outcomes);
  const createTask = async (request: Creation) =>
    handOver === "together" ? creations.add(request) : ((await createOne(request)).task?.id ?? "");
  const completions = new Completions(async (requests) => (await completeAll({ requests })).outcomes);
  const completeOne = worker.unary<object>("CompleteAssignment");
  const completeTask = (request: { lease: Lease; output: typeof OUTPUT }): Promise<unknown> =>
    handBack === "together" ? completions.add(request) : completeOne(request);
  let creates = 0;

  /** @returns tasks per second */
  async function run(tasks: number, atOnce: number): Promise<number> {
    const waiting = new Map<string, () => void>();
    const early = new Set<string>();
    const onCompleted = (taskId: string) => {
      const resolve = waiting.get(taskId);
      if (resolve === undefined) early.add(taskId);
      else resolve();
    };
    const stop = handBack === "by the SDK" ? workBySdk(atOnce, onCompleted) : work(atOnce, onCompleted);
    const startMs = performance.now();
    await inFlight(tasks, atOnce, async () => {
      const requestId = `${process.pid} ${++creates} ${startMs}`;
      const taskId = await createTask({ requestId, draft: { agentId: AGENT, description: "count words" } });
      if (!early.delete(taskId)) await new Promise<void>((resolve) => waiting.set(taskId, resolve));
      waiting.delete(taskId);
    });
    const seconds = (performance.now() - startMs) / 1000;
    await stop();
    return tasks / seconds;
  }

  function work(atOnce: number, onCompleted: (taskId: string) => void): () => void {
    const stream = worker.stream("WatchAssignments", { agentId: AGENT, capacity: 2 * atOnce, begin: true });
    stream.on("error", () => {});
    stream.on("data", ({ assignment }: WatchAssignmentsResponse) => {
      const lease = assignment?.lease;
      if (lease === undefined) return;
      void completeTask({ lease, output: OUTPUT }).then(() => onCompleted(lease.taskId));
    });
    return () => stream.cancel();
  }

  function workBySdk(atOnce: number, onCompleted: (taskId: string) => void): () => Promise<void> {
    const { workers } = connectTo(`http://${address}`);
    const calls: typeof workers = {
      ...workers,
      async batchCompleteAssignments(request, options) {
        const answer = await workers.batchCompleteAssignments(request, options);
        for (const { lease } of request.requests ?? []) onCompleted(lease?.taskId ?? "");
        return answer;
      },
    };
    const output = { words: 3 };
    const sdk = startWorker({
      ...{ calls, agentId: AGENT, capacity: 2 * atOnce },
      work: async () => ({ output }),
    });
    return () => sdk.stop();
  }

  return {
    run,
    close() {
      delegator.close();
      worker.close();
    },
  };
}
