import type { HandlerContext } from "@connectrpc/connect";
import { AgentStatus } from "@depute/contracts/depute/registry/v1/agent_pb";
import type {
  Assignment,
  WatchAssignmentsRequest,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason, newId } from "@depute/core";
import { linkSignals } from "@depute/service";
import { withHeartbeats } from "../queue/with-heartbeats.ts";
import { callerOf, callOptions, type TasksContext } from "./context.ts";

/**
 * Streams assignments to a worker while it has free capacity. The leases outlive the stream: the worker ends a lease,
 * or lets it expire by sending no more heartbeats.
 *
 * @throws DeputeError the errors of {@link requireWorkerOf}
 */
export async function* watchAssignments(
  tasks: TasksContext,
  request: WatchAssignmentsRequest,
  context: HandlerContext,
): AsyncGenerator<{ assignment: Assignment } | { heartbeat: object }, void, undefined> {
  const { dispatcher, stopping, streamHeartbeatMs, timers } = tasks;
  const { agentId, worker, capacity, capabilityIds, begin, streamId } = request;
  await requireWorkerOf(tasks, agentId, context);
  const link = linkSignals(context.signal, stopping);
  const stream = dispatcher.open({
    agentId,
    worker,
    capacity: capacity || 1,
    capabilityIds,
    holder: newId(tasks.clock.now()),
    begins: begin,
    ...(streamId !== "" && { streamId }),
  });
  // If the client leaves while this generator waits at a yield, the generator does not end. So this listener closes the
  // stream.
  const close = () => stream.close();
  link.signal.addEventListener("abort", close, { once: true });
  if (link.signal.aborted) close();
  try {
    for await (const assignment of withHeartbeats(stream.assignments(), streamHeartbeatMs, timers)) {
      yield assignment === undefined ? { heartbeat: {} } : { assignment };
    }
  } finally {
    link.signal.removeEventListener("abort", close);
    link.release();
    close();
  }
}

/**
 * Requires that the caller is a worker of the agent.
 *
 * @throws DeputeError AGENT_NOT_FOUND, CALLER_NOT_ALLOWED, DEPENDENCY_UNAVAILABLE, and the errors of Authority.identify
 */
export async function requireWorkerOf(
  tasks: TasksContext,
  agentId: string,
  context: HandlerContext,
): Promise<void> {
  const caller = await callerOf(tasks, context);
  const { agent } = await tasks.dependencies.agents.getAgent(
    { agentId, viewer: caller.principal },
    callOptions(tasks, context),
  );
  if (agent?.status !== AgentStatus.ACTIVE) {
    throw new DeputeError(
      ErrorReason.AGENT_NOT_FOUND,
      "the agent does not exist, or the caller may not see it",
      { metadata: { agent: agentId } },
    );
  }
  if (!caller.mayActFor(agent.principal)) {
    throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent itself may take its assignments");
  }
}
