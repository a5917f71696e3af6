import { integer, type ReadTx, row, text, type WriteTx } from "@depute/store";

/** A holder session that replicas share. */
export interface HolderSessionRow {
  readonly id: string;
  readonly principal: string;
  /** The terms of the holder session, as JSON. */
  readonly terms: string;
  /** The key of the holder session, sealed by the master key. */
  readonly sealed: string;
  /** The time at which the holder session expires, in epoch milliseconds. */
  readonly expireTime: number;
}

const ROW = row({ id: text, principal: text, terms: text, sealed: text, expire_ms: integer });
const ID_ROW = row({ id: text });
const NUMBERS_ROW = row({ everybody: integer, own: integer });

/**
 * Inserts a holder session. Returns false if the principal, or the store, has its maximum number of holder sessions.
 */
export async function insertHolderSession(
  tx: WriteTx,
  { id, principal, terms, sealed, expireTime }: HolderSessionRow,
  { now, max, maxOfOne }: { readonly now: number; readonly max: number; readonly maxOfOne: number },
): Promise<boolean> {
  const numbers = await tx.get(
    NUMBERS_ROW,
    `SELECT (SELECT COUNT(*) FROM holder_sessions WHERE expire_ms >= ?) AS everybody,
       (SELECT COUNT(*) FROM holder_sessions WHERE principal = ? AND expire_ms >= ?) AS own`,
    [now, principal, now],
  );
  if (numbers === undefined || numbers.everybody >= max || numbers.own >= maxOfOne) return false;
  await tx.run(
    "INSERT INTO holder_sessions (id, principal, terms, sealed, expire_ms) VALUES (?, ?, ?, ?, ?)",
    [id, principal, terms, sealed, expireTime],
  );
  return true;
}

export async function findHolderSession(tx: ReadTx, id: string): Promise<HolderSessionRow | undefined> {
  const sql = "SELECT id, principal, terms, sealed, expire_ms FROM holder_sessions WHERE id = ?";
  const found = await tx.get(ROW, sql, [id]);
  if (found === undefined) return undefined;
  const { expire_ms: expireTime, ...session } = found;
  return { ...session, expireTime };
}

/** Returns those of the given ids that have a holder session in the store. A closed holder session has no row. */
export async function openSessionIds(tx: ReadTx, ids: readonly string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const sql = `SELECT id FROM holder_sessions WHERE id IN (${ids.map(() => "?").join(", ")})`;
  return (await tx.all(ID_ROW, sql, ids)).map(({ id }) => id);
}

export async function deleteHolderSession(tx: WriteTx, id: string): Promise<void> {
  await tx.run("DELETE FROM holder_sessions WHERE id = ?", [id]);
}

/** Deletes some holder sessions that expired before a time; returns their number. */
export async function forgetHolderSessions(tx: WriteTx, before: number, limit: number): Promise<number> {
  const { changes } = await tx.run(
    `DELETE FROM holder_sessions WHERE id IN
       (SELECT id FROM holder_sessions WHERE expire_ms < ? ORDER BY expire_ms LIMIT ?)`,
    [before, limit],
  );
  return changes;
}
