import type { HandlerContext } from "@connectrpc/connect";
import type { DelegateLimits } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { type Identity, mayActFor } from "@depute/service";
import { widensHeld } from "../rules/delegate-limits.ts";
import { countHeldByAgent, readDelegateLimits, writeDelegateLimits } from "../store/queue-rows.ts";
import { callOptions, type TasksContext } from "./context.ts";

/**
 * Sets the limits that all workers of an agent share: how many tasks they may hold, and whether dispatch to them is
 * stopped.
 *
 * @throws DeputeError AGENT_NOT_FOUND, AGENT_BOUNDS_WIDENED, CALLER_NOT_ALLOWED, DEPENDENCY_UNAVAILABLE, and the errors
 * of Authority.identify
 */
export async function setDelegateLimits(
  tasks: TasksContext,
  agentId: string,
  limits: DelegateLimits,
  context: HandlerContext,
): Promise<void> {
  const { engine, boundsOperators } = tasks;
  const identity = await requireAgent(tasks, agentId, context);
  await engine.store.write(async (tx) => {
    const before = await readDelegateLimits(tx, agentId);
    if (widensHeld(before, limits) && !boundsOperators.mayWiden(identity)) {
      throw widened(agentId, before?.maxHeld ?? 0, limits.maxHeld);
    }
    await writeDelegateLimits(tx, agentId, limits);
    engine.limitsChanged(tx, agentId);
  });
}

/** Returns the limits of an agent, and the number of tasks that its workers hold. */
export async function getDelegateLimits(tasks: TasksContext, agentId: string, context: HandlerContext) {
  await requireAgent(tasks, agentId, context);
  return tasks.engine.store.read(async (tx) => ({
    limits: (await readDelegateLimits(tx, agentId)) ?? {},
    heldCount: await countHeldByAgent(tx, agentId),
  }));
}

/** Requires that the caller is the agent or an operator of bounds. Returns the caller's identity. */
async function requireAgent(tasks: TasksContext, id: string, context: HandlerContext): Promise<Identity> {
  const identity = await tasks.authority.identify(context);
  const isOperator = tasks.boundsOperators.includes(identity);
  const { agent } = await tasks.dependencies.agents.getAgent(
    { agentId: id, viewer: isOperator ? "" : identity.principal },
    callOptions(tasks, context),
  );
  if (isOperator || (agent !== undefined && mayActFor(identity, agent.principal))) return identity;
  throw new DeputeError(
    ErrorReason.CALLER_NOT_ALLOWED,
    "only the agent itself or a principal of DEPUTE_BOUNDS_OPERATORS may do this",
  );
}

function widened(agent: string, before: number, after: number): DeputeError {
  const words = (maxHeld: number) => (maxHeld === 0 ? "no bound" : String(maxHeld));
  return new DeputeError(
    ErrorReason.AGENT_BOUNDS_WIDENED,
    "only a principal of DEPUTE_BOUNDS_OPERATORS may widen the agent's limits",
    {
      metadata: { agent, widenings: "1" },
      violations: [
        { field: "limits.max_held", description: `is ${words(before)}, and would become ${words(after)}` },
      ],
    },
  );
}
