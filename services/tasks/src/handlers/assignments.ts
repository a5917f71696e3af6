import type { HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type {
  Assignment,
  Lease,
  WatchAssignmentsRequest,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason, newId } from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import { CLAIM_BATCH, claim, type WorkerStream } from "../claim.ts";
import type { Engine } from "../engine.ts";
import { advance } from "../rules/advance.ts";
import { holdsLease } from "../rules/lease.ts";
import { afterRelease } from "../rules/retry.ts";
import { callerOf, callOptions, type TasksContext } from "./context.ts";

/**
 * Hands work to a worker as it comes, as far as the worker has room. The leases outlive the stream: they end when the
 * worker ends them or falls silent.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED
 */
export async function* watchAssignments(
  tasks: TasksContext,
  request: WatchAssignmentsRequest,
  context: HandlerContext,
): AsyncGenerator<{ assignment: Assignment }, void, undefined> {
  const { engine, assignmentWakeUps, timers, pollMs, stopping } = tasks;
  const { agentId, worker, capacity, capabilityIds } = request;
  await requireWorkerOf(tasks, agentId, context);
  const stream: WorkerStream = { agentId, worker, capacity: capacity || 1, capabilityIds, holder: newId() };
  const link = linkSignals(context.signal, stopping);
  // What is handed out on this stream is a log of its own: each assignment comes after the one before.
  let given = 0;
  const undelivered = new Set<Assignment>();
  const giveBackUndelivered = async () => {
    const leases = [...undelivered].map(({ lease }) => lease);
    undelivered.clear();
    for (const lease of leases) if (lease !== undefined) await giveBack(engine, lease);
  };
  // A reader that goes away without reading on leaves this generator where it is.
  link.signal.addEventListener("abort", () => giveBackUndelivered().catch(leaveToLimits), { once: true });
  try {
    const log = follow({
      read: async (_after: number, limit) =>
        (await claim(engine, stream, limit, tasks.contextMemory)).map((assignment) => {
          undelivered.add(assignment);
          return { number: ++given, assignment };
        }),
      position: (item) => item.number,
      after: 0,
      wake: (listener) => assignmentWakeUps.on(agentId, listener),
      pollMs,
      timers,
      signal: link.signal,
      batch: CLAIM_BATCH,
    });
    for await (const { assignment } of log) {
      undelivered.delete(assignment);
      yield { assignment };
    }
  } finally {
    link.release();
    await giveBackUndelivered().catch(leaveToLimits);
  }
}

/**
 * Refuses who may not work for an agent.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED
 */
export async function requireWorkerOf(
  tasks: TasksContext,
  agentId: string,
  context: HandlerContext,
): Promise<void> {
  const caller = await callerOf(tasks, context);
  const { agent } = await tasks.dependencies.agents.getAgent(
    { id: agentId, viewer: caller.principal },
    callOptions(tasks, context),
  );
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(ErrorReason.AGENT_NOT_FOUND, "no such agent", { metadata: { agent: agentId } });
  }
  if (!caller.mayActFor(agent.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent itself can take its work");
  }
}

/** A task that could not be put back waits again when its lease runs out. */
function leaveToLimits(): void {}

/** Puts a task back that was claimed for a stream and never sent on it, unless its lease has ended otherwise. */
async function giveBack(engine: Engine, lease: Lease): Promise<void> {
  await engine.change(lease.taskId, (before, nowMs) =>
    holdsLease(before, lease)
      ? advance(before, { payload: afterRelease(before.task), by: "worker" }, nowMs)
      : { record: before, events: [] },
  );
}
