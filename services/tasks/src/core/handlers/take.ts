import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Assignment, TakeAssignmentsRequest } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { waitFor } from "@depute/service";
import { CLAIM_BATCH, claim, reissuedAssignments, type WorkerStream } from "../queue/claim.ts";
import { requireWorkerOf } from "./assignments.ts";
import type { TasksContext } from "./context.ts";

/** The default wait of TakeAssignments, milliseconds. */
const DEFAULT_WAIT_MS = 20_000;

/**
 * Returns assignments by long poll. First repeats assignments of earlier responses that the worker does not list as
 * known. Repeats assignments of started tasks only if dispatch itself starts the tasks. If there is none to repeat,
 * dispatches pending tasks.
 *
 * @throws DeputeError the errors of {@link requireWorkerOf}
 */
export async function takeAssignments(
  tasks: TasksContext,
  request: TakeAssignmentsRequest,
  context: HandlerContext,
): Promise<Assignment[]> {
  const { agentId, worker, capacity, capabilityIds, knownTaskIds, wait, begin } = request;
  await requireWorkerOf(tasks, agentId, context);
  const { engine, contextMemory, assignmentWakeUps: wakeUps, timers, pollMs, stopping } = tasks;
  // The holder name of a stream is an id without a slash. So no stream has the name below, which contains a slash.
  const holder = `${agentId}/${worker}`;
  const stream: WorkerStream = {
    agentId,
    worker,
    capacity: capacity || 1,
    capabilityIds,
    holder,
    begins: begin,
  };
  const lostAssignments = await reissuedAssignments(engine, stream, new Set(knownTaskIds), contextMemory);
  if (lostAssignments.length > 0) return lostAssignments;
  const waitMs = wait === undefined ? DEFAULT_WAIT_MS : durationMs(wait);
  const takenAssignments = await waitFor(
    { wakeUps, timers, pollMs, stopping },
    agentId,
    waitMs,
    context,
    async () => {
      const assignments = await claim(engine, stream, CLAIM_BATCH, contextMemory);
      return assignments.length > 0 ? assignments : undefined;
    },
  );
  return takenAssignments ?? [];
}
