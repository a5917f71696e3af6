import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { NO_EXPIRY } from "../rules/liveness.ts";
import { type LeaseCounts, runningThatMatter } from "../rules/removal-guard.ts";
import type { AgentMemory } from "./agents.ts";
import { IS_RUNNING, STANDING } from "./standing.ts";

const N_ROW = row({ n: integer });
const AGENT_ID_ROW = row({ agent_id: text });

/** Writes when an agent was last heard of and until when it counts as alive, in epoch ms. */
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
    [agentId, heartbeatTime, expireTime, STANDING.running],
  );
}

/** Takes the lease of a removed agent out of the counting. */
export async function retireLease(tx: WriteTx, agentId: string): Promise<void> {
  await tx.run("UPDATE leases SET standing = ? WHERE agent_id = ?", [STANDING.removed, agentId]);
}

/**
 * Counts the leases that ended between `from` and `now`, and those that run, no further than it can matter to the removal
 * guard: the question is asked every second, and most of the time nothing ended. Removed agents' and those without an end
 * are left out.
 */
export async function countLeases(
  tx: ReadTx,
  { from, now }: { from: number; now: number },
): Promise<LeaseCounts> {
  const ended = await tx.get(
    N_ROW,
    "SELECT COUNT(*) AS n FROM leases WHERE expire_time > ? AND expire_time <= ? AND standing <> ?",
    [from, now, STANDING.removed],
  );
  const vanished = ended?.n ?? 0;
  const most = runningThatMatter(vanished);
  if (most === 0) return { running: 0, vanished };
  const running = await tx.get(
    N_ROW,
    `SELECT COUNT(*) AS n FROM (SELECT 1 FROM leases
       WHERE expire_time > ? AND expire_time < ? AND standing <> ? LIMIT ?) AS counted`,
    [now, NO_EXPIRY, STANDING.removed, most],
  );
  return { running: running?.n ?? 0, vanished };
}

/** Agents whose lease ended by `asOf` and of which watchers were not told, the longest ago first. */
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
  await tx.run("UPDATE leases SET standing = ? WHERE agent_id = ?", [STANDING.ended, agentId]);
}
