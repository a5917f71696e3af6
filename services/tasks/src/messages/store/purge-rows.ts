import { flag, integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

const ROOT_ID_ROW = row({ root_id: text });
const MESSAGE_ID_ROW = row({ message_id: text });
const DELIVERY_ROW = row({ agent_id: text, sequence: integer, acknowledged: flag });

/** Returns lineages without open tasks whose last message arrived before a time, oldest first. */
export async function quietLineages(tx: ReadTx, beforeMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    ROOT_ID_ROW,
    `SELECT root_id FROM cap_lineages WHERE update_ms < ? AND NOT EXISTS (
       SELECT 1 FROM cap_tasks WHERE cap_tasks.root_id = cap_lineages.root_id AND cap_tasks.is_open = 1)
     ORDER BY update_ms LIMIT ?`,
    [beforeMs, limit],
  );
  return rows.map((row) => row.root_id);
}

/** Returns an organization's lineages without open tasks. */
export async function lineagesOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    ROOT_ID_ROW,
    `SELECT root_id FROM cap_lineages WHERE organization = ? AND organization <> '' AND NOT EXISTS (
       SELECT 1 FROM cap_tasks WHERE cap_tasks.root_id = cap_lineages.root_id AND cap_tasks.is_open = 1)
     ORDER BY root_id LIMIT ?`,
    [organization, limit],
  );
  return rows.map((row) => row.root_id);
}

/** The tables with rows of a lineage, besides its messages. Each row has the id of the lineage's root. */
const PARTS = ["cap_refusals", "cap_tool_results", "cap_parties", "cap_tasks", "cap_lineages"];

/**
 * Purges at most `limit` messages of a lineage. Purges the lineage itself in the call that finds fewer than `limit`
 * messages. Each inbox then states the first sequence after the purged messages, so that readers detect the gap.
 *
 * @returns whether the lineage may have more messages; if so, call again
 */
export async function purgeLineage(tx: WriteTx, rootId: string, limit: number): Promise<boolean> {
  const messages = await tx.all(
    MESSAGE_ID_ROW,
    "SELECT message_id FROM cap_messages WHERE root_id = ? ORDER BY number LIMIT ?",
    [rootId, limit],
  );
  for (const { message_id: messageId } of messages) {
    const deliveries = await tx.all(
      DELIVERY_ROW,
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
