import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import { IS_PENDING } from "./conditions.ts";

/** What a worker takes. */
export interface QueueFilter {
  readonly agentId: string;
  /** Empty for all, free work too. */
  readonly capabilityIds: readonly string[];
}

interface Waiting {
  task_id: string;
  urgency: number;
  create_ms: number;
}

const WAITING = `${IS_PENDING} AND queued_ms <= ? AND next_deadline_ms > ?`;

/**
 * Ids of tasks that wait for this worker, may be taken by now, and whose time has not passed: by priority, then oldest
 * first.
 */
export async function waitingTasks(
  tx: ReadTx,
  { agentId, capabilityIds }: QueueFilter,
  nowMs: number,
  limit: number,
): Promise<string[]> {
  if (capabilityIds.length === 0) {
    const rows = await tx.all<Waiting>(
      `SELECT task_id, urgency, create_ms FROM tasks WHERE agent_id = ? AND ${WAITING}
       ORDER BY urgency, create_ms, task_id LIMIT ?`,
      [agentId, nowMs, nowMs, limit],
    );
    return rows.map((row) => row.task_id);
  }
  const found: Waiting[] = [];
  for (const capabilityId of new Set(capabilityIds)) {
    found.push(
      ...(await tx.all<Waiting>(
        `SELECT task_id, urgency, create_ms FROM tasks WHERE agent_id = ? AND capability_id = ? AND ${WAITING}
         ORDER BY urgency, create_ms, task_id LIMIT ?`,
        [agentId, capabilityId, nowMs, nowMs, limit],
      )),
    );
  }
  return found
    .sort((a, b) => a.urgency - b.urgency || a.create_ms - b.create_ms || (a.task_id < b.task_id ? -1 : 1))
    .slice(0, limit)
    .map((row) => row.task_id);
}

/** How many tasks a stream holds. */
export async function countHeld(tx: ReadTx, holder: string): Promise<number> {
  const row = await tx.get<{ held: number }>("SELECT count(*) AS held FROM tasks WHERE holder = ?", [holder]);
  return row?.held ?? 0;
}

/** Ids of tasks that a holder has, whose leases last, and of which the work has not begun, or has if that counts too. */
export async function acceptedBy(
  tx: ReadTx,
  holder: string,
  orBegun: boolean,
  nowMs: number,
): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>(
    "SELECT task_id FROM tasks WHERE holder = ? AND (status = ? OR status = ?) AND next_deadline_ms > ?",
    [holder, TaskStatus.ACCEPTED, orBegun ? TaskStatus.RUNNING : TaskStatus.ACCEPTED, nowMs],
  );
  return rows.map((row) => row.task_id);
}

/** What an agent bounds its work by. */
export interface DelegateLimitsRow {
  /** Tasks that its workers may hold together; 0 for no bound. */
  readonly maxHeld: number;
  /** Whether nothing is handed out. */
  readonly draining: boolean;
}

export async function readDelegateLimits(
  tx: ReadTx,
  agentId: string,
): Promise<DelegateLimitsRow | undefined> {
  const row = await tx.get<{ max_held: number; draining: number }>(
    "SELECT max_held, draining FROM delegate_limits WHERE agent_id = ?",
    [agentId],
  );
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

/** How many tasks all workers of an agent hold. */
export async function countHeldByAgent(tx: ReadTx, agentId: string): Promise<number> {
  const row = await tx.get<{ held: number }>(
    "SELECT count(*) AS held FROM tasks WHERE agent_id = ? AND holder IS NOT NULL",
    [agentId],
  );
  return row?.held ?? 0;
}

/** The first agents after this one, in the order of their ids, for which a task waits. */
export async function agentsWithWork(
  tx: ReadTx,
  afterAgentId: string,
  nowMs: number,
  limit: number,
): Promise<string[]> {
  const found: string[] = [];
  for (let after = afterAgentId; found.length < limit; ) {
    // One step of the index for each agent, however many tasks wait for it.
    const row = await tx.get<{ agent_id: string }>(
      `SELECT agent_id FROM tasks WHERE agent_id > ? AND ${WAITING} ORDER BY agent_id LIMIT 1`,
      [after, nowMs, nowMs],
    );
    if (row === undefined) break;
    found.push(row.agent_id);
    after = row.agent_id;
  }
  return found;
}

/** Ids of up to `limit` tasks of a holder whose leases end before a time. */
export async function leasesDueOf(
  tx: ReadTx,
  holder: string,
  beforeMs: number,
  limit: number,
): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>(
    "SELECT task_id FROM tasks WHERE holder = ? AND lease_expire_ms <= ? LIMIT ?",
    [holder, beforeMs, limit],
  );
  return rows.map(({ task_id }) => task_id);
}

/** The tasks that a holder has. */
export async function heldBy(tx: ReadTx, holder: string): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>("SELECT task_id FROM tasks WHERE holder = ?", [holder]);
  return rows.map(({ task_id }) => task_id);
}
