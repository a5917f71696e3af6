import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx } from "@depute/store";

/** What a worker takes. */
export interface QueueFilter {
  readonly agentId: string;
  /** Empty for all, free work too. */
  readonly capabilityIds: readonly string[];
}

interface Waiting {
  task_id: string;
  create_ms: number;
}

// Written into the statement: a partial index is used only when its condition stands there.
const WAITING = `status = ${TaskStatus.PENDING} AND queued_ms <= ? AND next_deadline_ms > ?`;

/** Ids of tasks that wait for this worker, may be taken by now, and whose time has not passed, oldest first. */
export async function waitingTasks(
  tx: ReadTx,
  { agentId, capabilityIds }: QueueFilter,
  nowMs: number,
  limit: number,
): Promise<string[]> {
  if (capabilityIds.length === 0) {
    const rows = await tx.all<Waiting>(
      `SELECT task_id, create_ms FROM tasks WHERE agent_id = ? AND ${WAITING}
       ORDER BY create_ms, task_id LIMIT ?`,
      [agentId, nowMs, nowMs, limit],
    );
    return rows.map((row) => row.task_id);
  }
  const found: Waiting[] = [];
  for (const capabilityId of new Set(capabilityIds)) {
    found.push(
      ...(await tx.all<Waiting>(
        `SELECT task_id, create_ms FROM tasks WHERE agent_id = ? AND capability_id = ? AND ${WAITING}
         ORDER BY create_ms, task_id LIMIT ?`,
        [agentId, capabilityId, nowMs, nowMs, limit],
      )),
    );
  }
  return found
    .sort((a, b) => a.create_ms - b.create_ms || (a.task_id < b.task_id ? -1 : 1))
    .slice(0, limit)
    .map((row) => row.task_id);
}

/** How many tasks a stream holds. */
export async function countHeld(tx: ReadTx, holder: string): Promise<number> {
  const row = await tx.get<{ held: number }>("SELECT count(*) AS held FROM tasks WHERE holder = ?", [holder]);
  return row?.held ?? 0;
}
