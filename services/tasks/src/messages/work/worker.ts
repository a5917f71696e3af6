import type { WriteTx } from "@depute/store";
import type { NamedWorker, TaskRecord } from "../../core/index.ts";
import type { CapContext } from "../handlers/context.ts";
import { readCapTask } from "../store/task-rows.ts";

/** How long an agent that works by messages may be silent: it writes when it has something to say. Milliseconds. */
export const SILENCE_MS = 3_600_000;

/** The inbox of an agent, as the worker that holds the tasks of an agent that works by messages. */
export function inboxOf(agentId: string): NamedWorker {
  return { holder: `cap:${agentId}`, worker: "cap" };
}

/** Whether an agent's inbox holds a task. */
export function holds({ hold }: TaskRecord, agentId: string): boolean {
  return hold?.holder === inboxOf(agentId).holder;
}

/**
 * Has an agent's inbox hold a task of the agent that waits. A task that another worker has stays as it is. Everything that the
 * agent does on its task extends the lease.
 */
export async function holdIfOwn(
  tx: WriteTx,
  { engine }: CapContext,
  capTaskId: string,
  agentId: string,
): Promise<void> {
  const task = await readCapTask(tx, capTaskId);
  if (task?.agentId !== agentId) return;
  await engine.hold(tx, task.taskId, inboxOf(agentId));
}

/**
 * Notes that an agent which works by messages is there: the leases of its inbox that are half over begin anew. Reading its
 * inbox, acknowledging and writing count as heartbeats; a silent agent loses its tasks as any worker does.
 */
export async function signOfLife({ engine, clock }: CapContext, agentId: string): Promise<void> {
  await engine.keepAlive(inboxOf(agentId).holder, clock.now() + SILENCE_MS / 2);
}
