import { integer, type ReadTx, row, text } from "@depute/store";
import { IS_PENDING } from "./conditions.ts";

const QUEUED_ROW = row({ agent_id: text, tasks: integer, oldest_ms: integer });
const STATUS_ROW = row({ status: integer, tasks: integer });

/**
 * Maximum number of tasks that one reading of the metrics counts, by database. A count in SQLite blocks the event loop
 * for about a millisecond per 10,000 tasks.
 */
const MAX_COUNTED = { sqlite: 100_000, postgres: 1_000_000 } as const;

/** The pending tasks of one agent. */
export interface QueuedTasks {
  readonly agentId: string;
  readonly tasks: number;
  /** The creation time of the oldest pending task, in epoch milliseconds. */
  readonly oldestMs: number;
}

/** Counts the pending tasks by agent: at most MAX_COUNTED tasks in all. */
export async function countQueued(tx: ReadTx): Promise<QueuedTasks[]> {
  const rows = await tx.all(
    QUEUED_ROW,
    `SELECT agent_id, count(*) AS tasks, min(create_ms) AS oldest_ms FROM
       (SELECT agent_id, create_ms FROM tasks WHERE ${IS_PENDING} LIMIT ?) AS queued GROUP BY agent_id`,
    [MAX_COUNTED[tx.dialect]],
  );
  return rows.map(({ agent_id: agentId, tasks, oldest_ms: oldestMs }) => ({ agentId, tasks, oldestMs }));
}

/** Counts the open tasks by status, at most MAX_COUNTED in all; the keys are the statuses' numbers. */
export async function countOpen(tx: ReadTx): Promise<ReadonlyMap<number, number>> {
  const rows = await tx.all(
    STATUS_ROW,
    `SELECT status, count(*) AS tasks FROM
       (SELECT status FROM tasks WHERE next_deadline_ms IS NOT NULL LIMIT ?) AS open_tasks GROUP BY status`,
    [MAX_COUNTED[tx.dialect]],
  );
  return new Map(rows.map(({ status, tasks }) => [status, tasks]));
}
