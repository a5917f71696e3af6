import { FOUND, type ReadTx, row, text, type WriteTx } from "@depute/store";
import type { Block } from "../rules/documents.ts";

const SIGNER_ROW = row({ signer: text });
const ID_ROW = row({ id: text });
const ID_PARENT_ROW = row({ id: text, parent: text });

/** Records the blocks of a verified chain. Of a recorded block, only the expiry may change, to a later time. */
export async function recordBlocks(tx: WriteTx, blocks: readonly Block[], now: number): Promise<void> {
  for (const block of blocks) {
    await tx.run(
      `INSERT INTO blocks (revocation_id, parent_id, signer, delegatee, delegation_id, contract_id, expires_ms,
         record_ms, own_expire_ms)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (revocation_id, parent_id) DO UPDATE SET expires_ms = excluded.expires_ms
         WHERE excluded.expires_ms > blocks.expires_ms`,
      [
        block.revocationId,
        block.parentId,
        block.signer,
        block.delegatee,
        block.delegationId,
        block.contractId,
        block.expiresAt,
        now,
        block.ownExpiry,
      ],
    );
  }
}

/** Whether a block is recorded. With `signer`, whether it is recorded with this signer. */
export async function hasBlock(tx: ReadTx, revocationId: string, signer?: string): Promise<boolean> {
  const signers = await signersOf(tx, revocationId);
  return signer === undefined ? signers.length > 0 : signers.includes(signer);
}

/** Returns the signers of a recorded block; empty for an unknown block. */
export async function signersOf(tx: ReadTx, revocationId: string): Promise<string[]> {
  const rows = await tx.all(SIGNER_ROW, "SELECT signer FROM blocks WHERE revocation_id = ?", [revocationId]);
  return rows.map(({ signer }) => signer);
}

/**
 * Whether a principal may revoke a recorded block: as its delegatee, as its signer, or as the signer of a block above
 * in a recorded chain.
 */
export async function mayRevokeRecorded(
  tx: ReadTx,
  revocationId: string,
  principal: string,
): Promise<boolean> {
  const row = await tx.get(
    FOUND,
    `WITH RECURSIVE above (revocation_id, parent_id, signer) AS (
       SELECT revocation_id, parent_id, signer FROM blocks WHERE revocation_id = ?
       UNION
       SELECT blocks.revocation_id, blocks.parent_id, blocks.signer
         FROM blocks JOIN above ON blocks.revocation_id = above.parent_id
     )
     SELECT 1 AS found FROM above WHERE signer = ?
     UNION
     SELECT 1 FROM blocks WHERE revocation_id = ? AND delegatee = ?`,
    [revocationId, principal, revocationId, principal],
  );
  return row !== undefined;
}

/**
 * Returns the revocation ids of the blocks that a key signed and that were recorded before a time. If that time is the
 * revocation's `keepBefore`, these blocks stay valid.
 */
export async function blocksSignedBefore(tx: ReadTx, signer: string, before: number): Promise<string[]> {
  const rows = await tx.all(
    ID_ROW,
    "SELECT DISTINCT revocation_id AS id FROM blocks WHERE signer = ? AND record_ms < ?",
    [signer, before],
  );
  return rows.map(({ id }) => id);
}

/**
 * Returns the ids, in order, of a signer's unexpired blocks that were recorded at or after a time. The list begins
 * after the id `after`.
 */
export async function blocksSignedSince(
  tx: ReadTx,
  signer: string,
  { since, now, after, limit }: { since: number; now: number; after: string; limit: number },
): Promise<string[]> {
  const rows = await tx.all(
    ID_ROW,
    `SELECT DISTINCT revocation_id AS id FROM blocks
     WHERE signer = ? AND revocation_id > ? AND record_ms >= ? AND expires_ms >= ? ORDER BY revocation_id LIMIT ?`,
    [signer, after, since, now, limit],
  );
  return rows.map(({ id }) => id);
}

/** Whether a principal is the signer or delegatee of a recorded block. */
export async function isKnownPrincipal(tx: ReadTx, principal: string): Promise<boolean> {
  const row = await tx.get(
    FOUND,
    `SELECT 1 AS found FROM blocks WHERE signer = ?
     UNION ALL SELECT 1 FROM blocks WHERE delegatee = ? LIMIT 1`,
    [principal, principal],
  );
  return row !== undefined;
}

/**
 * Deletes blocks that expired before a time; returns their number. Keeps revoked blocks, and blocks that state no
 * expiry. The service still needs these blocks: they determine the rightful revokers, and how long the log keeps an
 * entry's content.
 */
export async function forgetBlocks(tx: WriteTx, before: number, limit: number): Promise<number> {
  const old = await tx.all(
    ID_PARENT_ROW,
    `SELECT revocation_id AS id, parent_id AS parent FROM blocks
     WHERE own_expire_ms > 0 AND own_expire_ms < ? AND NOT EXISTS
       (SELECT 1 FROM revocations WHERE revocations.revocation_id = blocks.revocation_id)
     ORDER BY own_expire_ms LIMIT ?`,
    [before, limit],
  );
  for (const { id, parent } of old) {
    await tx.run("DELETE FROM block_bindings WHERE revocation_id = ?", [id]);
    await tx.run("DELETE FROM blocks WHERE revocation_id = ? AND parent_id = ?", [id, parent]);
  }
  return old.length;
}
