import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { NO_EXPIRY } from "../rules/agent.ts";
import { type LeaseCounts, maxRunningCounted } from "../rules/removal-guard.ts";
import type { AgentMemory } from "./agents.ts";
import { IS_RUNNING, LEASE_STATE } from "./lease-state.ts";

const N_ROW = row({ n: integer });
const AGENT_ID_ROW = row({ agent_id: text });

/**
 * Writes the times of an agent's last heartbeat and of the lease's expiry, in epoch milliseconds. The lease then counts
 * as running.
 */
export async function putLease(
  tx: WriteTx,
  { recent }: Pick<AgentMemory, "recent">,
  agentId: string,
  heartbeatTime: number,
  expireTime: number,
): Promise<void> {
  recent.forget(tx, agentId);
  await tx.run(
    `INSERT INTO leases (agent_id, heartbeat_time, expire_time, standing) VALUES (?, ?, ?, ?)
     ON CONFLICT (agent_id) DO UPDATE SET heartbeat_time = excluded.heartbeat_time,
       expire_time = excluded.expire_time, standing = excluded.standing`,
    [agentId, heartbeatTime, expireTime, LEASE_STATE.running],
  );
}

/** Excludes the lease of a removed agent from the counts. */
export async function retireLease(tx: WriteTx, agentId: string): Promise<void> {
  await tx.run("UPDATE leases SET standing = ? WHERE agent_id = ?", [LEASE_STATE.removed, agentId]);
}

/**
 * Counts the leases that ended between `from` and `now`, and the running leases. The count of running leases stops at
 * the number that the removal guard needs for its decision, because the guard counts up to once a second. Omits leases
 * of removed agents and leases without an end.
 */
export async function countLeases(
  tx: ReadTx,
  { from, now }: { from: number; now: number },
): Promise<LeaseCounts> {
  const ended = await tx.get(
    N_ROW,
    "SELECT COUNT(*) AS n FROM leases WHERE expire_time > ? AND expire_time <= ? AND standing <> ?",
    [from, now, LEASE_STATE.removed],
  );
  const vanished = ended?.n ?? 0;
  const most = maxRunningCounted(vanished);
  if (most === 0) return { running: 0, vanished };
  const running = await tx.get(
    N_ROW,
    `SELECT COUNT(*) AS n FROM (SELECT 1 FROM leases
       WHERE expire_time > ? AND expire_time < ? AND standing <> ? LIMIT ?) AS counted`,
    [now, NO_EXPIRY, LEASE_STATE.removed, most],
  );
  return { running: running?.n ?? 0, vanished };
}

/** Returns the ids of agents whose lease ended by `asOf` without a LOST entry yet, oldest expiry first. */
export async function endedLeases(tx: ReadTx, asOf: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    AGENT_ID_ROW,
    `SELECT agent_id FROM leases WHERE ${IS_RUNNING} AND expire_time <= ?
     ORDER BY expire_time LIMIT ?`,
    [asOf, limit],
  );
  return rows.map((row) => row.agent_id);
}

export async function markEnded(tx: WriteTx, agentId: string): Promise<void> {
  await tx.run("UPDATE leases SET standing = ? WHERE agent_id = ?", [LEASE_STATE.ended, agentId]);
}
