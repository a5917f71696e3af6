import type { RevocationEntry } from "@depute/dct";
import type { ReadTx, WriteTx } from "@depute/store";

/** One entry of the log. */
export interface LoggedRevocation {
  readonly sequence: number;
  readonly entry: RevocationEntry;
  /** Milliseconds since 1970. */
  readonly recordTime: number;
}

/** An entry whose revoker's right could not be checked yet. */
export interface PendingRevocation {
  readonly position: number;
  readonly entry: RevocationEntry;
}

interface Row {
  revocation_id: string;
  revoked_by: string;
  scope: RevocationEntry["scope"];
  revoked_at: string;
  signature: string;
  record_ms: number;
}

const MEMBERS = "revocation_id, revoked_by, scope, revoked_at, signature, record_ms";

/** The log after a sequence, in order. */
export async function readRevocations(tx: ReadTx, after: number, limit: number): Promise<LoggedRevocation[]> {
  const rows = await tx.all<Row & { sequence: number }>(
    `SELECT sequence, ${MEMBERS} FROM revocations WHERE sequence > ? ORDER BY sequence LIMIT ?`,
    [after, limit],
  );
  return rows.map(toLogged);
}

/** The newest sequence of the log; 0 when it is empty. */
export async function lastSequence(tx: ReadTx): Promise<number> {
  const row = await tx.get<{ last: number | null }>("SELECT MAX(sequence) AS last FROM revocations");
  return row?.last ?? 0;
}

/** What the log has of one revoker on one block: an entry of each scope at most. */
export async function findRevocations(
  tx: ReadTx,
  { revocationId, revokedBy }: Pick<RevocationEntry, "revocationId" | "revokedBy">,
): Promise<LoggedRevocation[]> {
  const rows = await tx.all<Row & { sequence: number }>(
    `SELECT sequence, ${MEMBERS} FROM revocations WHERE revocation_id = ? AND revoked_by = ?`,
    [revocationId, revokedBy],
  );
  return rows.map(toLogged);
}

/** Appends to the log. Sequences have no gaps, since they are given within the transaction that writes them. */
export async function appendRevocation(
  tx: WriteTx,
  entry: RevocationEntry,
  now: number,
): Promise<LoggedRevocation> {
  const sequence = (await lastSequence(tx)) + 1;
  await tx.run(`INSERT INTO revocations (sequence, ${MEMBERS}) VALUES (?, ?, ?, ?, ?, ?, ?)`, [
    sequence,
    ...values(entry),
    now,
  ]);
  return { sequence, entry, recordTime: now };
}

/** Pending entries after a position that are not settled, in order. */
export async function readPending(tx: ReadTx, after: number, limit: number): Promise<PendingRevocation[]> {
  const rows = await tx.all<Row & { position: number }>(
    `SELECT position, ${MEMBERS} FROM pending_revocations WHERE position > ? AND settled = 0
     ORDER BY position LIMIT ?`,
    [after, limit],
  );
  return rows.map((row) => ({ position: row.position, entry: toEntry(row) }));
}

/** Unsettled entries for a block by one revoker. */
export async function findPending(
  tx: ReadTx,
  { revocationId, revokedBy }: Pick<RevocationEntry, "revocationId" | "revokedBy">,
): Promise<PendingRevocation[]> {
  const rows = await tx.all<Row & { position: number }>(
    `SELECT position, ${MEMBERS} FROM pending_revocations
     WHERE revocation_id = ? AND revoked_by = ? AND settled = 0 ORDER BY position`,
    [revocationId, revokedBy],
  );
  return rows.map((row) => ({ position: row.position, entry: toEntry(row) }));
}

/** How many entries wait, of everybody and of one revoker. */
export async function countPending(tx: ReadTx, revokedBy: string): Promise<{ all: number; own: number }> {
  const row = await tx.get<{ everybody: number; own: number | null }>(
    `SELECT COUNT(*) AS everybody, SUM(CASE WHEN revoked_by = ? THEN 1 ELSE 0 END) AS own
     FROM pending_revocations WHERE settled = 0`,
    [revokedBy],
  );
  return { all: row?.everybody ?? 0, own: row?.own ?? 0 };
}

export async function insertPending(tx: WriteTx, entry: RevocationEntry, now: number): Promise<void> {
  const last = await tx.get<{ last: number | null }>("SELECT MAX(position) AS last FROM pending_revocations");
  const position = (last?.last ?? 0) + 1;
  await tx.run(
    `INSERT INTO pending_revocations (position, ${MEMBERS}, settled) VALUES (?, ?, ?, ?, ?, ?, ?, 0)`,
    [position, ...values(entry), now],
  );
}

/** Notes that the log has what waited. */
export async function settlePending(
  tx: WriteTx,
  { revocationId, revokedBy }: Pick<RevocationEntry, "revocationId" | "revokedBy">,
): Promise<void> {
  await tx.run("UPDATE pending_revocations SET settled = 1 WHERE revocation_id = ? AND revoked_by = ?", [
    revocationId,
    revokedBy,
  ]);
}

function toLogged(row: Row & { sequence: number }): LoggedRevocation {
  return { sequence: row.sequence, entry: toEntry(row), recordTime: row.record_ms };
}

function toEntry(row: Row): RevocationEntry {
  return {
    revocationId: row.revocation_id,
    revokedBy: row.revoked_by,
    revokedAt: row.revoked_at,
    scope: row.scope,
    signature: row.signature,
  };
}

function values({ revocationId, revokedBy, scope, revokedAt, signature }: RevocationEntry): string[] {
  return [revocationId, revokedBy, scope, revokedAt, signature];
}

/** Whether the log has any of these blocks. */
export async function isAnyRevoked(tx: ReadTx, revocationIds: readonly string[]): Promise<boolean> {
  const row = await tx.get(
    `SELECT 1 AS found FROM revocations WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")}) LIMIT 1`,
    revocationIds,
  );
  return row !== undefined;
}
