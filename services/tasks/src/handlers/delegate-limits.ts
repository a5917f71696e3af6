import type { HandlerContext } from "@connectrpc/connect";
import type { DelegateLimits } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { DeputeError, ErrorReason } from "@depute/core";
import { countHeldByAgent, readDelegateLimits, writeDelegateLimits } from "../store/queue-rows.ts";
import { callerOf, callOptions, type TasksContext } from "./context.ts";

/** Bounds how much work an agent's workers get together. */
export async function setDelegateLimits(
  tasks: TasksContext,
  agentId: string,
  limits: DelegateLimits,
  context: HandlerContext,
): Promise<void> {
  await requireAgent(tasks, agentId, context);
  const { engine } = tasks;
  await engine.store.write(async (tx) => {
    await writeDelegateLimits(tx, agentId, limits);
    engine.limitsChanged(tx, agentId);
  });
}

/** What bounds an agent's work, and how much of it there is. */
export async function getDelegateLimits(tasks: TasksContext, agentId: string, context: HandlerContext) {
  await requireAgent(tasks, agentId, context);
  return tasks.engine.store.read(async (tx) => ({
    limits: (await readDelegateLimits(tx, agentId)) ?? {},
    held: await countHeldByAgent(tx, agentId),
  }));
}

async function requireAgent(tasks: TasksContext, id: string, context: HandlerContext): Promise<void> {
  const caller = await callerOf(tasks, context);
  const { agent } = await tasks.dependencies.agents.getAgent(
    { id, viewer: caller.principal },
    callOptions(tasks, context),
  );
  if (agent !== undefined && caller.mayActFor(agent.principal)) return;
  throw new DeputeError(ErrorReason.CALLER_NOT_ALLOWED, "only the agent itself can bound its work");
}
