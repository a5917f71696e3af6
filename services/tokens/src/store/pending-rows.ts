import type { RevocationEntry } from "@depute/dct";
import { integer, nullable, oneOf, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import type { KeyStatement } from "../rules/key-revocation.ts";

const EVERYBODY_OWN_ROW = row({ everybody: integer, own: nullable(integer) });
const OWN_ROW = row({ own: integer });
const LAST_ROW = row({ last: nullable(integer) });

/** The content of a pending revocation: an entry that revokes a block, or a key's revocation of itself. */
export type Waiting = { readonly entry: RevocationEntry } | { readonly statement: KeyStatement };

/**
 * A pending revocation. An entry waits for a chain that proves that its revoker is rightful. A key's revocation of
 * itself waits until a recorded block names the key as signer or delegatee.
 */
export type PendingRevocation = Waiting & { readonly position: number };

const ROW = row({
  position: integer,
  revocation_id: text,
  revoked_by: text,
  scope: oneOf("block", "chain", "key"),
  revoked_at: text,
  signature: text,
  keep_before: nullable(text),
});
type Row = RowOf<typeof ROW>;

const MEMBERS = "revocation_id, revoked_by, scope, revoked_at, signature, keep_before";
const ROWS = `SELECT position, ${MEMBERS} FROM pending_revocations`;
/**
 * The SQL condition for open rows: neither settled nor expired. Its parameter is the current time in epoch
 * milliseconds.
 */
const OPEN = "settled = 0 AND (expire_ms = 0 OR expire_ms > ?)";

/** The members that identify a revoker's entries for a block. */
type Key = Pick<RevocationEntry, "revocationId" | "revokedBy">;

/** Returns open pending revocations after a position, in order. */
export async function readPending(
  tx: ReadTx,
  after: number,
  now: number,
  limit: number,
): Promise<PendingRevocation[]> {
  const rows = await tx.all(ROW, `${ROWS} WHERE position > ? AND ${OPEN} ORDER BY position LIMIT ?`, [
    after,
    now,
    limit,
  ]);
  return rows.map(toPending);
}

/** Returns the position of the newest pending revocation, open or not; 0 if there is none. */
export async function lastPosition(tx: ReadTx): Promise<number> {
  const row = await tx.get(LAST_ROW, "SELECT MAX(position) AS last FROM pending_revocations");
  return row?.last ?? 0;
}

/** Returns one revoker's open pending entries for a block. */
export async function findPending(
  tx: ReadTx,
  { revocationId, revokedBy }: Key,
  now: number,
): Promise<RevocationEntry[]> {
  const rows = await tx.all(
    ROW,
    `${ROWS} WHERE revocation_id = ? AND revoked_by = ? AND ${OPEN} ORDER BY position`,
    [revocationId, revokedBy, now],
  );
  return rows.map(toPending).flatMap((one) => ("entry" in one ? [one.entry] : []));
}

/** Returns the open pending revocations in which a key revokes itself. */
export async function findPendingStatements(tx: ReadTx, key: string, now: number): Promise<KeyStatement[]> {
  const rows = await tx.all(ROW, `${ROWS} WHERE revoked_by = ? AND scope = 'key' AND ${OPEN}`, [key, now]);
  return rows.map(toPending).flatMap((one) => ("statement" in one ? [one.statement] : []));
}

/**
 * Returns open pending revocations in which a key revokes itself, and a recorded block now names the key as signer or
 * delegatee. These revocations may now be logged.
 */
export async function settledStatements(tx: ReadTx, now: number, limit: number): Promise<KeyStatement[]> {
  const rows = await tx.all(
    ROW,
    `${ROWS} WHERE scope = 'key' AND ${OPEN} AND (
       EXISTS (SELECT 1 FROM blocks WHERE signer = revoked_by)
       OR EXISTS (SELECT 1 FROM blocks WHERE delegatee = revoked_by)) ORDER BY position LIMIT ?`,
    [now, limit],
  );
  return rows.map(toPending).flatMap((one) => ("statement" in one ? [one.statement] : []));
}

/** Counts the pending revocations that can expire: all of them, and those that one caller submitted. */
export async function countPool(
  tx: ReadTx,
  caller: string,
  now: number,
): Promise<{ all: number; own: number }> {
  const row = await tx.get(
    EVERYBODY_OWN_ROW,
    `SELECT COUNT(*) AS everybody, SUM(CASE WHEN caller = ? THEN 1 ELSE 0 END) AS own
     FROM pending_revocations WHERE settled = 0 AND expire_ms > ?`,
    [caller, now],
  );
  return { all: row?.everybody ?? 0, own: row?.own ?? 0 };
}

/**
 * Returns the number of one revoker's pending revocations that never expire. Only the revocations of known keys never
 * expire.
 */
export async function countKept(tx: ReadTx, revokedBy: string): Promise<number> {
  const row = await tx.get(
    OWN_ROW,
    "SELECT COUNT(*) AS own FROM pending_revocations WHERE revoked_by = ? AND settled = 0 AND expire_ms = 0",
    [revokedBy],
  );
  return row?.own ?? 0;
}

/**
 * Inserts a pending revocation. Replaces an earlier one with the same id, revoker and scope.
 *
 * @param expireMs the time from which housekeeping may delete the row, in epoch milliseconds; 0 means never
 */
export async function insertPending(
  tx: WriteTx,
  id: string,
  waiting: Waiting,
  { caller, now, expireMs }: { caller: string; now: number; expireMs: number },
): Promise<void> {
  const position = (await lastPosition(tx)) + 1;
  const { revokedBy, revokedAt, signature } = "entry" in waiting ? waiting.entry : waiting.statement;
  const [scope, keepBefore] =
    "entry" in waiting ? [waiting.entry.scope, null] : ["key", waiting.statement.keepBefore];
  await tx.run(
    `INSERT INTO pending_revocations (position, ${MEMBERS}, record_ms, settled, caller, expire_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?)
     ON CONFLICT (revocation_id, revoked_by, scope) DO UPDATE SET position = excluded.position,
       revoked_at = excluded.revoked_at, signature = excluded.signature, record_ms = excluded.record_ms, settled = 0,
       caller = excluded.caller, expire_ms = excluded.expire_ms`,
    [position, id, revokedBy, scope, revokedAt, signature, keepBefore, now, caller, expireMs],
  );
}

/** Removes the expiry of a revoker's pending entries for a block, because the revoker's key is now known. */
export async function keepPending(tx: WriteTx, { revocationId, revokedBy }: Key): Promise<void> {
  await tx.run(
    "UPDATE pending_revocations SET expire_ms = 0 WHERE revocation_id = ? AND revoked_by = ? AND expire_ms > 0",
    [revocationId, revokedBy],
  );
}

/** Marks a revoker's pending entries for a block as settled, because the log now contains them. */
export async function settlePending(tx: WriteTx, { revocationId, revokedBy }: Key): Promise<void> {
  await tx.run("UPDATE pending_revocations SET settled = 1 WHERE revocation_id = ? AND revoked_by = ?", [
    revocationId,
    revokedBy,
  ]);
}

/** Deletes expired pending revocations, and returns them. Keeps the newest row, so that no position is used twice. */
export async function expirePending(tx: WriteTx, now: number, limit: number): Promise<PendingRevocation[]> {
  const rows = await tx.all(
    ROW,
    `${ROWS} WHERE expire_ms > 0 AND expire_ms <= ?
       AND position < (SELECT MAX(position) FROM pending_revocations) ORDER BY expire_ms LIMIT ?`,
    [now, limit],
  );
  for (const { position } of rows) {
    await tx.run("DELETE FROM pending_revocations WHERE position = ?", [position]);
  }
  return rows.map(toPending);
}

function toPending(row: Row): PendingRevocation {
  const { position, revocation_id: revocationId, revoked_by: revokedBy, scope } = row;
  const { revoked_at: revokedAt, signature, keep_before: keepBefore } = row;
  if (scope === "key") {
    const statement = { key: revokedBy, keepBefore: keepBefore ?? "", revokedBy, revokedAt, signature };
    return { position, statement };
  }
  return { position, entry: { revocationId, revokedBy, revokedAt, scope, signature } };
}
