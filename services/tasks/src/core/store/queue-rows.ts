import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { flag, integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import { IS_PENDING } from "./conditions.ts";

const HELD_ROW = row({ held: integer });
const TASK_ID_ROW = row({ task_id: text });
const LIMITS_ROW = row({ max_held: integer, draining: flag });
const AGENT_ID_ROW = row({ agent_id: text });

/** Selects the tasks that a worker accepts. */
export interface QueueFilter {
  readonly agentId: string;
  /** The capabilities that the worker accepts; empty for all, including tasks without a capability. */
  readonly capabilityIds: readonly string[];
}

const WAITING_ROW = row({ task_id: text, urgency: integer, create_ms: integer });
type Waiting = RowOf<typeof WAITING_ROW>;

const WAITING = `${IS_PENDING} AND queued_ms <= ? AND next_deadline_ms > ?`;

/**
 * Returns the ids of pending tasks for this worker, highest priority first, then oldest first. Omits tasks in backoff
 * and tasks whose deadline has passed.
 */
export async function waitingTasks(
  tx: ReadTx,
  { agentId, capabilityIds }: QueueFilter,
  nowMs: number,
  limit: number,
): Promise<string[]> {
  if (capabilityIds.length === 0) {
    const rows = await tx.all(
      WAITING_ROW,
      `SELECT task_id, urgency, create_ms FROM tasks WHERE agent_id = ? AND ${WAITING}
       ORDER BY urgency, create_ms, task_id LIMIT ?`,
      [agentId, nowMs, nowMs, limit],
    );
    return rows.map((row) => row.task_id);
  }
  const waitingRows: Waiting[] = [];
  for (const capabilityId of new Set(capabilityIds)) {
    waitingRows.push(
      ...(await tx.all(
        WAITING_ROW,
        `SELECT task_id, urgency, create_ms FROM tasks WHERE agent_id = ? AND capability_id = ? AND ${WAITING}
         ORDER BY urgency, create_ms, task_id LIMIT ?`,
        [agentId, capabilityId, nowMs, nowMs, limit],
      )),
    );
  }
  return waitingRows
    .sort((a, b) => a.urgency - b.urgency || a.create_ms - b.create_ms || (a.task_id < b.task_id ? -1 : 1))
    .slice(0, limit)
    .map((row) => row.task_id);
}

/** Returns the number of leases of a holder, such as one worker's stream. */
export async function countHeld(tx: ReadTx, holder: string): Promise<number> {
  const row = await tx.get(HELD_ROW, "SELECT count(*) AS held FROM tasks WHERE holder = ?", [holder]);
  return row?.held ?? 0;
}

/**
 * Returns the ids of tasks that a holder has under unexpired leases and has not started. With `orBegun`, includes
 * started tasks.
 */
export async function acceptedBy(
  tx: ReadTx,
  holder: string,
  orBegun: boolean,
  nowMs: number,
): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    "SELECT task_id FROM tasks WHERE holder = ? AND (status = ? OR status = ?) AND next_deadline_ms > ?",
    [holder, TaskStatus.ACCEPTED, orBegun ? TaskStatus.RUNNING : TaskStatus.ACCEPTED, nowMs],
  );
  return rows.map((row) => row.task_id);
}

/** The limits that an agent's workers share. */
export interface DelegateLimitsRow {
  /** Maximum number of tasks that the agent's workers may hold together; 0 for no bound. */
  readonly maxHeld: number;
  /** Whether dispatch to the agent's workers is stopped. */
  readonly draining: boolean;
}

export async function readDelegateLimits(
  tx: ReadTx,
  agentId: string,
): Promise<DelegateLimitsRow | undefined> {
  const row = await tx.get(LIMITS_ROW, "SELECT max_held, draining FROM delegate_limits WHERE agent_id = ?", [
    agentId,
  ]);
  return row && { maxHeld: row.max_held, draining: row.draining === 1 };
}

export async function writeDelegateLimits(
  tx: WriteTx,
  agentId: string,
  { maxHeld, draining }: DelegateLimitsRow,
): Promise<void> {
  await tx.run(
    `INSERT INTO delegate_limits (agent_id, max_held, draining) VALUES (?, ?, ?)
     ON CONFLICT (agent_id) DO UPDATE SET max_held = excluded.max_held, draining = excluded.draining`,
    [agentId, maxHeld, draining ? 1 : 0],
  );
}

/** Returns the number of tasks that all workers of an agent hold. */
export async function countHeldByAgent(tx: ReadTx, agentId: string): Promise<number> {
  const row = await tx.get(
    HELD_ROW,
    "SELECT count(*) AS held FROM tasks WHERE agent_id = ? AND holder IS NOT NULL",
    [agentId],
  );
  return row?.held ?? 0;
}

/** Maximum number of agents that one statement checks. */
const AGENTS_AT_ONCE = 256;

/** Returns the agents of a list that have a pending task, whatever its capability. */
export async function agentsWithWorkAmong(
  tx: ReadTx,
  agentIds: readonly string[],
  nowMs: number,
): Promise<string[]> {
  const found: string[] = [];
  for (let from = 0; from < agentIds.length; from += AGENTS_AT_ONCE) {
    const ids = padded(agentIds.slice(from, from + AGENTS_AT_ONCE));
    const rows = await tx.all(
      AGENT_ID_ROW,
      `SELECT column1 AS agent_id FROM (VALUES ${ids.map(() => "(?)").join(", ")}) AS agents
       WHERE EXISTS (SELECT 1 FROM tasks WHERE agent_id = column1 AND ${WAITING})`,
      [...ids, nowMs, nowMs],
    );
    found.push(...new Set(rows.map((row) => row.agent_id)));
  }
  return found;
}

/**
 * Repeats the last element until the length is a power of two. The statements then have few different texts, which the
 * database prepares once.
 */
function padded(ids: readonly string[]): readonly string[] {
  const length = 2 ** Math.ceil(Math.log2(ids.length));
  return [...ids, ...Array.from({ length: length - ids.length }, () => ids.at(-1) ?? "")];
}

/** Returns ids of agents with a pending task, in order, starting after `afterAgentId`. */
export async function agentsWithWork(
  tx: ReadTx,
  afterAgentId: string,
  nowMs: number,
  limit: number,
): Promise<string[]> {
  const taskIds: string[] = [];
  for (let after = afterAgentId; taskIds.length < limit; ) {
    // Each iteration finds the next agent by one index look-up, whatever the number of its pending tasks.
    const row = await tx.get(
      AGENT_ID_ROW,
      `SELECT agent_id FROM tasks WHERE agent_id > ? AND ${WAITING} ORDER BY agent_id LIMIT 1`,
      [after, nowMs, nowMs],
    );
    if (row === undefined) break;
    taskIds.push(row.agent_id);
    after = row.agent_id;
  }
  return taskIds;
}

/** Returns the ids of up to `limit` tasks of a holder whose leases end before a time. */
export async function leasesDueOf(
  tx: ReadTx,
  holder: string,
  beforeMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    "SELECT task_id FROM tasks WHERE holder = ? AND lease_expire_ms <= ? LIMIT ?",
    [holder, beforeMs, limit],
  );
  return rows.map(({ task_id }) => task_id);
}

/** Returns the ids of the tasks that a holder has under leases. */
export async function heldBy(tx: ReadTx, holder: string): Promise<string[]> {
  const rows = await tx.all(TASK_ID_ROW, "SELECT task_id FROM tasks WHERE holder = ?", [holder]);
  return rows.map(({ task_id }) => task_id);
}
