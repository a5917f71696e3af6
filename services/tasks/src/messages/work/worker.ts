import type { WriteTx } from "@depute/store";
import type { NamedWorker, TaskRecord } from "../../core/index.ts";
import { readCapTask } from "../store/task-rows.ts";
import type { CapContext } from "./context.ts";

/**
 * Milliseconds without a call after which an agent that works by messages loses its lease. The time is long, because
 * such an agent sends few messages.
 */
export const SILENCE_MS = 3_600_000;

/**
 * Returns the worker that holds the leases of an agent that works by messages. The worker's name stands for the agent's
 * inbox.
 */
export function inboxOf(agentId: string): NamedWorker {
  return { holder: `cap:${agentId}`, worker: "cap" };
}

/** Whether the agent's inbox has the lease of a task. */
export function holds({ hold }: TaskRecord, agentId: string): boolean {
  return hold?.holder === inboxOf(agentId).holder;
}

/**
 * Leases a pending task of an agent to the agent's inbox, or extends the inbox's lease. Does not change a task that
 * another worker holds.
 */
export async function leaseToInbox(
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
 * Extends the leases of an agent's inbox that have less than half of their duration left. Reading the inbox,
 * acknowledging and sending count as heartbeats. Without a call by the agent, its leases expire.
 */
export async function extendInboxLeases({ engine, clock }: CapContext, agentId: string): Promise<void> {
  await engine.keepAlive(inboxOf(agentId).holder, clock.now() + SILENCE_MS / 2);
}
