import type { ReadTx, WriteTx } from "@depute/store";

/** Lineages in which nothing happened since a time and no task is open, the oldest first. */
export async function quietLineages(tx: ReadTx, beforeMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all<{ root_id: string }>(
    `SELECT root_id FROM cap_lineages WHERE update_ms < ? AND NOT EXISTS (
       SELECT 1 FROM cap_tasks JOIN tasks ON tasks.task_id = cap_tasks.task_id
       WHERE cap_tasks.root_id = cap_lineages.root_id AND tasks.next_deadline_ms IS NOT NULL)
     ORDER BY update_ms LIMIT ?`,
    [beforeMs, limit],
  );
  return rows.map((row) => row.root_id);
}

/** What hangs on a lineage, by its root. */
const PARTS = ["cap_refusals", "cap_tool_results", "cap_parties", "cap_tasks", "cap_lineages"];

/**
 * Forgets up to so many messages of a lineage, and with the last of them the lineage. An inbox then says from where on it is
 * whole, so that nobody takes what was forgotten for never sent.
 *
 * @returns whether there is more of it
 */
export async function purgeLineage(tx: WriteTx, rootId: string, limit: number): Promise<boolean> {
  const messages = await tx.all<{ message_id: string }>(
    "SELECT message_id FROM cap_messages WHERE root_id = ? ORDER BY number LIMIT ?",
    [rootId, limit],
  );
  for (const { message_id: messageId } of messages) {
    const deliveries = await tx.all<{ agent_id: string; sequence: number; acknowledged: number }>(
      "DELETE FROM cap_inbox WHERE message_id = ? RETURNING agent_id, sequence, acknowledged",
      [messageId],
    );
    for (const { agent_id: agentId, sequence, acknowledged } of deliveries) {
      await tx.run(
        `UPDATE cap_mailboxes SET waiting = waiting - ?,
           first_sequence = CASE WHEN first_sequence > ? THEN first_sequence ELSE ? END WHERE agent_id = ?`,
        [1 - acknowledged, sequence, sequence + 1, agentId],
      );
    }
    await tx.run("DELETE FROM cap_requests WHERE message_id = ?", [messageId]);
    await tx.run("DELETE FROM cap_messages WHERE message_id = ?", [messageId]);
  }
  if (messages.length === limit) return true;
  for (const table of PARTS) await tx.run(`DELETE FROM ${table} WHERE root_id = ?`, [rootId]);
  return false;
}
