import type { CryptoEngine, RevocationEntry } from "@depute/dct";
import {
  FOUND,
  integer,
  nullable,
  oneOf,
  type ReadTx,
  type RowOf,
  row,
  text,
  type WriteTx,
} from "@depute/store";
import { contentDigest, type LogContent, NO_HEAD, nextHead } from "../rules/checkpoint.ts";
import type { KeyStatement } from "../rules/key-revocation.ts";

const SEQUENCE_HEAD_ROW = row({ sequence: integer, head: text });
const HEAD_ROW = row({ head: text });
const SEQUENCE_ROW = row({ sequence: integer });
const LAST_OF_ALL_ROW = row({ sequence: integer, position: integer, rootChange: integer });
const NUMBER_ROW = row({ number: integer });

/** The revocation of a block, as the log has it. */
export interface LoggedRevocation extends LogPlace {
  readonly entry: RevocationEntry;
}

/** One entry of the log: the revocation of a block or of a key. A pruned entry has only its position and digests. */
export interface LogPlace {
  readonly sequence: number;
  readonly entry?: RevocationEntry;
  readonly key?: KeyStatement;
  /** The digest of the entry's content. A pruned entry keeps it. */
  readonly digest: string;
  /** The digest over all entries of the log up to and including this one. */
  readonly head: string;
  /** The time at which the service recorded the entry, in epoch milliseconds. */
  readonly recordTime: number;
}

const LOG_ROW = row({
  sequence: integer,
  revocation_id: text,
  revoked_by: text,
  scope: oneOf("block", "chain", "key", "pruned"),
  revoked_at: text,
  signature: text,
  record_ms: integer,
  digest: text,
  head: text,
  principal: nullable(text),
  keep_before: nullable(text),
});
type LogRow = RowOf<typeof LOG_ROW>;

const MEMBERS = "revocation_id, revoked_by, scope, revoked_at, signature, record_ms";

const LOG = `SELECT revocations.sequence, ${MEMBERS}, digest, head, principal, keep_before FROM revocations
  LEFT JOIN key_revocations ON key_revocations.sequence = revocations.sequence`;

/** Returns entries of the log after a sequence, in order. */
export async function readLog(tx: ReadTx, after: number, limit: number): Promise<LogPlace[]> {
  const where = "WHERE revocations.sequence > ? ORDER BY revocations.sequence LIMIT ?";
  return (await tx.all(LOG_ROW, `${LOG} ${where}`, [after, limit])).map(toPlace);
}

/** Returns the highest sequence of the log, and its head. For an empty log, the sequence is 0 and the head is empty. */
export async function lastPlace(tx: ReadTx): Promise<Pick<LogPlace, "sequence" | "head">> {
  const row = await tx.get(
    SEQUENCE_HEAD_ROW,
    "SELECT sequence, head FROM revocations ORDER BY sequence DESC LIMIT 1",
  );
  return row ?? { sequence: 0, head: NO_HEAD };
}

/**
 * Returns the highest sequence of the log, the position of the newest pending revocation, and the number of the last
 * change of a root key; 0 without any.
 */
export async function lastOfAll(
  tx: ReadTx,
): Promise<{ readonly sequence: number; readonly position: number; readonly rootChange: number }> {
  const last = await tx.get(
    LAST_OF_ALL_ROW,
    `SELECT (SELECT COALESCE(MAX(sequence), 0) FROM revocations) AS sequence,
       (SELECT COALESCE(MAX(position), 0) FROM pending_revocations) AS position,
       (SELECT COALESCE(MAX(change), 0) FROM root_keys) AS "rootChange"`,
  );
  return last ?? { sequence: 0, position: 0, rootChange: 0 };
}

/** Returns the log's head at a sequence; undefined if the log is shorter. */
export async function headAt(tx: ReadTx, sequence: number): Promise<string | undefined> {
  const row = await tx.get(HEAD_ROW, "SELECT head FROM revocations WHERE sequence = ?", [sequence]);
  return row?.head;
}

/** Returns the log's entries of one revoker for one block: at most one for each scope. */
export async function findRevocations(
  tx: ReadTx,
  { revocationId, revokedBy }: Pick<RevocationEntry, "revocationId" | "revokedBy">,
): Promise<LoggedRevocation[]> {
  const rows = await tx.all(LOG_ROW, `${LOG} WHERE revocation_id = ? AND revoked_by = ?`, [
    revocationId,
    revokedBy,
  ]);
  return rows.map(toPlace).filter((place): place is LoggedRevocation => place.entry !== undefined);
}

/**
 * Appends a block's revocation. The transaction that inserts the entry also assigns its sequence, so sequences have no
 * gaps.
 */
export async function appendRevocation(
  tx: WriteTx,
  engine: CryptoEngine,
  entry: RevocationEntry,
  now: number,
): Promise<LoggedRevocation> {
  return { ...(await append(tx, engine, { entry }, values(entry), now)), entry };
}

/**
 * Appends a key's revocation.
 *
 * @param id the id of the statement
 */
export async function appendKeyRevocation(
  tx: WriteTx,
  engine: CryptoEngine,
  key: KeyStatement,
  id: string,
  now: number,
): Promise<LogPlace> {
  const row = [id, key.revokedBy, "key", key.revokedAt, key.signature];
  const place = await append(tx, engine, { key }, row, now);
  await tx.run("INSERT INTO key_revocations (sequence, principal, keep_before) VALUES (?, ?, ?)", [
    ...[place.sequence, key.key, key.keepBefore],
  ]);
  return { ...place, key };
}

/** Returns the log's entries for any of these blocks, in the order of the log. */
export async function findRevocationsOf(
  tx: ReadTx,
  revocationIds: readonly string[],
  limit: number,
): Promise<LoggedRevocation[]> {
  if (revocationIds.length === 0) return [];
  const where = `WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")}) ORDER BY revocations.sequence LIMIT ?`;
  const rows = await tx.all(LOG_ROW, `${LOG} ${where}`, [...revocationIds, limit]);
  return rows.map(toPlace).filter((place): place is LoggedRevocation => place.entry !== undefined);
}

/** Returns the logged revocations of a key. */
export async function findKeyRevocations(tx: ReadTx, key: string): Promise<LogPlace[]> {
  return (await tx.all(LOG_ROW, `${LOG} WHERE principal = ? ORDER BY revocations.sequence`, [key])).map(
    toPlace,
  );
}

async function append(
  tx: WriteTx,
  engine: CryptoEngine,
  content: LogContent,
  row: readonly string[],
  now: number,
): Promise<LogPlace> {
  const last = await lastPlace(tx);
  const sequence = last.sequence + 1;
  const digest = contentDigest(engine, sequence, content);
  const head = nextHead(engine, last.head, digest);
  await tx.run(
    `INSERT INTO revocations (sequence, ${MEMBERS}, digest, head, own_expire_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,
       (SELECT COALESCE(MAX(own_expire_ms), 0) FROM blocks WHERE revocation_id = ?))`,
    [sequence, ...row, now, digest, head, row[0] ?? ""],
  );
  return { sequence, digest, head, recordTime: now };
}

/**
 * Adds some entries of the log to the hash chain. An older version wrote these entries without the hash chain. Returns
 * true if more such entries remain.
 */
export async function sealSome(tx: WriteTx, engine: CryptoEngine, limit: number): Promise<boolean> {
  const [first] = await tx.all(
    SEQUENCE_ROW,
    "SELECT sequence FROM revocations WHERE head = '' ORDER BY sequence LIMIT 1",
  );
  if (first === undefined) return false;
  const places = await readLog(tx, first.sequence - 1, limit);
  let head = (await headAt(tx, first.sequence - 1)) ?? NO_HEAD;
  for (const { sequence, entry } of places) {
    if (entry === undefined)
      throw new Error(`entry ${sequence} of the revocation log is not in the hash chain`);
    const digest = contentDigest(engine, sequence, { entry });
    head = nextHead(engine, head, digest);
    await tx.run("UPDATE revocations SET digest = ?, head = ? WHERE sequence = ?", [digest, head, sequence]);
  }
  return places.length === limit;
}

function toPlace(row: LogRow): LogPlace {
  const { sequence, digest, head, record_ms: recordTime, scope, principal, keep_before } = row;
  const place = { sequence, digest, head, recordTime };
  if (scope === "pruned") return place;
  if (scope !== "key") return { ...place, entry: toEntry({ ...row, scope }) };
  const { revoked_by: revokedBy, revoked_at: revokedAt, signature } = row;
  const statement = { key: principal ?? "", keepBefore: keep_before ?? "", revokedBy, revokedAt, signature };
  return { ...place, key: statement };
}

function toEntry(row: Omit<LogRow, "scope"> & Pick<RevocationEntry, "scope">): RevocationEntry {
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

/** Whether the log has an entry for any of these blocks. */
export async function isAnyRevoked(tx: ReadTx, revocationIds: readonly string[]): Promise<boolean> {
  const row = await tx.get(
    FOUND,
    `SELECT 1 AS found FROM revocations WHERE revocation_id IN (${revocationIds.map(() => "?").join(", ")}) LIMIT 1`,
    revocationIds,
  );
  return row !== undefined;
}

/** Returns the number of the log's entries by a principal since a time. Stops counting at a limit. */
export async function countSince(
  tx: ReadTx,
  revokedBy: string,
  since: number,
  limit: number,
): Promise<number> {
  const row = await tx.get(
    NUMBER_ROW,
    `SELECT COUNT(*) AS number FROM
       (SELECT 1 FROM revocations WHERE revoked_by = ? AND record_ms > ? LIMIT ?) AS recent`,
    [revokedBy, since, limit],
  );
  return row?.number ?? 0;
}

/**
 * Deletes the content of entries on blocks whose own expiry was before a time; returns their number. The expiry of a
 * block above does not count, because another chain with the block may expire later. Sequence, digest and head stay, so
 * the hash chain remains valid.
 */
export async function pruneRevocations(tx: WriteTx, before: number, limit: number): Promise<number> {
  const over = await tx.all(
    SEQUENCE_ROW,
    `SELECT sequence FROM revocations WHERE own_expire_ms > 0 AND own_expire_ms < ?
     ORDER BY own_expire_ms LIMIT ?`,
    [before, limit],
  );
  for (const { sequence } of over) {
    await tx.run(
      `UPDATE revocations SET scope = 'pruned', own_expire_ms = 0, revocation_id = ?, revoked_by = '', revoked_at = '',
         signature = ''
       WHERE sequence = ?`,
      [`pruned-${sequence}`, sequence],
    );
  }
  return over.length;
}
