import { integer, type ReadTx, real, row, type WriteTx } from "@depute/store";
import type { Bucket } from "../rules/rate.ts";

const BUCKET_ROW = row({ remaining: real, at_ms: integer });

/** Number of rows with a full allowance that each new message deletes. */
const DELETED_AT_ONCE = 10;

/** Returns the allowance of an agent; undefined for a full allowance, whose row was deleted or never written. */
export async function readBucket(tx: ReadTx, agentId: string): Promise<Bucket | undefined> {
  const found = await tx.get(BUCKET_ROW, "SELECT remaining, at_ms FROM session_rates WHERE agent_id = ?", [
    agentId,
  ]);
  return found && { remaining: found.remaining, atMs: found.at_ms };
}

/**
 * Stores the allowance of an agent, and deletes a few rows with a full allowance.
 *
 * @param fullMs allowances whose last message is older than this time are full, epoch milliseconds
 */
export async function writeBucket(
  tx: WriteTx,
  agentId: string,
  { remaining, atMs }: Bucket,
  fullMs: number,
): Promise<void> {
  await tx.run(
    `INSERT INTO session_rates (agent_id, remaining, at_ms) VALUES (?, ?, ?)
     ON CONFLICT (agent_id) DO UPDATE SET remaining = excluded.remaining, at_ms = excluded.at_ms`,
    [agentId, remaining, atMs],
  );
  await tx.run(
    `DELETE FROM session_rates WHERE agent_id IN
       (SELECT agent_id FROM session_rates WHERE at_ms < ? ORDER BY at_ms LIMIT ?)`,
    [fullMs, DELETED_AT_ONCE],
  );
}
