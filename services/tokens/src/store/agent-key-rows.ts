import { type ReadTx, row, text, type WriteTx } from "@depute/store";

/** The replacement of an agent's key, until the registry has accepted or finally refused the report about it. */
export interface KeyChange {
  readonly keyId: string;
  readonly successorId: string;
}

export const KEY_CHANGE_ROW = row<KeyChange>({ keyId: text, successorId: text });

export async function addKeyChange(tx: WriteTx, { keyId, successorId }: KeyChange): Promise<void> {
  await tx.run("INSERT INTO agent_key_changes (key_id, successor_id) VALUES (?, ?)", [keyId, successorId]);
}

/**
 * Returns key changes that are not yet reported. If the replaced key is itself the successor in an unreported change,
 * omits the later change. So the changes of one agent reach the registry in order.
 */
export async function firstKeyChanges(tx: ReadTx, limit: number): Promise<KeyChange[]> {
  return tx.all(
    KEY_CHANGE_ROW,
    `SELECT key_id AS "keyId", successor_id AS "successorId" FROM agent_key_changes c
     WHERE NOT EXISTS (SELECT 1 FROM agent_key_changes e WHERE e.successor_id = c.key_id)
     ORDER BY key_id LIMIT ?`,
    [limit],
  );
}

export async function removeKeyChange(tx: WriteTx, keyId: string): Promise<void> {
  await tx.run("DELETE FROM agent_key_changes WHERE key_id = ?", [keyId]);
}
