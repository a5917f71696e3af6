import { durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Assignment, TakeAssignmentsRequest } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { waitFor } from "@depute/service";
import { CLAIM_BATCH, claim, heldAnew, type WorkerStream } from "../queue/claim.ts";
import { requireWorkerOf } from "./assignments.ts";
import type { TasksContext } from "./context.ts";

/** How long TakeAssignments waits when it is not told. */
const DEFAULT_WAIT_MS = 20_000;

/**
 * Takes work by long poll: what an earlier answer may have lost first, then what waits.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED
 */
export async function takeAssignments(
  tasks: TasksContext,
  request: TakeAssignmentsRequest,
  context: HandlerContext,
): Promise<Assignment[]> {
  const { agentId, worker, capacity, capabilityIds, knownTaskIds, wait, begin } = request;
  await requireWorkerOf(tasks, agentId, context);
  const { engine, contextMemory, assignmentWakeUps: wakeUps, timers, pollMs, stopping } = tasks;
  // Streams are named by ids, so no stream and no worker of another agent is ever of this name.
  const holder = `${agentId}/${worker}`;
  const stream: WorkerStream = {
    agentId,
    worker,
    capacity: capacity || 1,
    capabilityIds,
    holder,
    begins: begin,
  };
  const lost = await heldAnew(engine, stream, new Set(knownTaskIds), contextMemory);
  if (lost.length > 0) return lost;
  const waitMs = wait === undefined ? DEFAULT_WAIT_MS : durationMs(wait);
  const taken = await waitFor({ wakeUps, timers, pollMs, stopping }, agentId, waitMs, context, async () => {
    const assignments = await claim(engine, stream, CLAIM_BATCH, contextMemory);
    return assignments.length > 0 ? assignments : undefined;
  });
  return taken ?? [];
}
