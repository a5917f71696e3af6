import { decodeBase64Url, encodeBase64Url, formatTime } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { type AuditSeal, FIRST_AUDIT_HEAD, GrowingTree } from "@depute/dct/transparency";
import { integer, nullable, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";
import { splitHashes } from "./audit-nodes.ts";

const STATE = row({
  last_id: integer,
  head: text,
  day: text,
  first_id: integer,
  previous_head: text,
  last_ms: integer,
  tree_first_id: integer,
  tree_size: integer,
  frontier: text,
});
const STATE_SQL = `SELECT last_id, head, day, first_id, previous_head, last_ms, tree_first_id, tree_size, frontier
  FROM audit_state`;

/** The end of the audit log, and its open day. */
export interface AuditState {
  readonly lastId: number;
  readonly head: Uint8Array;
  /** The day of the records since `firstId`, in UTC; empty before the first record. */
  readonly day: string;
  readonly firstId: number;
  readonly previousHead: Uint8Array;
  /** The time at which the newest record was appended, in epoch milliseconds. */
  readonly lastTime: number;
  /**
   * The id of the first record in the tree. It is `firstId`, unless a version without trees wrote records of the day.
   */
  readonly treeFirstId: number;
  readonly treeSize: number;
  /** The hashes of the tree's complete subtrees, from left to right. */
  readonly frontier: readonly Uint8Array[];
}

/** Reads the end of the log. */
export async function readState(tx: ReadTx): Promise<AuditState> {
  const state = await tx.get(STATE, STATE_SQL);
  if (state === undefined) throw new Error("audit_state has no row; migration 12 inserts it");
  const { last_id: lastId, day, first_id: firstId, last_ms: lastTime } = state;
  return {
    lastId,
    day,
    firstId,
    lastTime,
    head: headOf(state.head),
    previousHead: headOf(state.previous_head),
    ...{ treeFirstId: state.tree_first_id, treeSize: state.tree_size },
    frontier: splitHashes(decodeBase64Url(state.frontier) ?? new Uint8Array()),
  };
}

/** Writes the end of the log. */
export async function writeState(tx: WriteTx, state: AuditState): Promise<void> {
  const { lastId, head, day, firstId, previousHead, lastTime, treeFirstId, treeSize, frontier } = state;
  await tx.run(
    `UPDATE audit_state SET last_id = ?, head = ?, day = ?, first_id = ?, previous_head = ?, last_ms = ?,
       tree_first_id = ?, tree_size = ?, frontier = ?`,
    [
      ...[lastId, encodeBase64Url(head), day, firstId, encodeBase64Url(previousHead), lastTime],
      ...[treeFirstId, treeSize, encodeBase64Url(Buffer.concat(frontier))],
    ],
  );
}

/** Returns the tree over all records of the open day; undefined if a version without trees wrote one of them. */
export function openTree(sha256: CryptoEngine["sha256"], state: AuditState): GrowingTree | undefined {
  const { firstId, lastId, treeFirstId, treeSize, frontier } = state;
  const isWhole = treeFirstId === firstId && treeSize === lastId - firstId + 1;
  return isWhole ? new GrowingTree(sha256, treeSize, frontier) : undefined;
}

function headOf(text: string): Uint8Array {
  return text === "" ? FIRST_AUDIT_HEAD : (decodeBase64Url(text) ?? FIRST_AUDIT_HEAD);
}

/**
 * Seals the open day if it has ended.
 *
 * @param sha256 computes the root of the day's tree
 * @param now epoch milliseconds
 * @returns the state to which a record of today is appended, and whether a day was sealed
 */
export async function sealPastDay(
  tx: WriteTx,
  { sha256, now }: { readonly sha256: CryptoEngine["sha256"]; readonly now: number },
): Promise<{ readonly state: AuditState; readonly isSealed: boolean }> {
  const state = await readState(tx);
  const { lastId, head, day, firstId, previousHead } = state;
  const today = formatTime(now).slice(0, "2026-01-31".length);
  // After the clock was set back, the later day stays open.
  if (today <= day) return { state, isSealed: false };
  const isSealed = day !== "" && lastId >= firstId;
  if (isSealed) {
    const tree = openTree(sha256, state);
    const root = tree === undefined ? "" : encodeBase64Url(tree.root());
    await tx.run(
      "INSERT INTO audit_seals (day, first_id, last_id, previous_head, head, root) VALUES (?, ?, ?, ?, ?, ?)",
      [day, firstId, lastId, encodeBase64Url(previousHead), encodeBase64Url(head), root],
    );
  }
  const opened = {
    ...{ ...state, day: today, firstId: lastId + 1, previousHead: head },
    ...{ treeFirstId: lastId + 1, treeSize: 0, frontier: [] },
  };
  await writeState(tx, opened);
  return { state: opened, isSealed };
}

/** The seal of a day, and its positions in the transparency log; null before the log has them. */
export interface SealRow extends AuditSeal {
  readonly logIndex: number | null;
  /** The position of the seal's second leaf, which covers the Merkle root too. */
  readonly rootIndex: number | null;
}

const SEAL = row({
  day: text,
  first_id: integer,
  last_id: integer,
  previous_head: text,
  head: text,
  log_index: nullable(integer),
  root: text,
  root_index: nullable(integer),
});
const SEAL_SQL = `SELECT day, first_id, last_id, previous_head, head, log_index, root, root_index
  FROM audit_seals`;

/** Returns the seals of the days after a day, in order. */
export async function readSeals(tx: ReadTx, afterDay: string, limit: number): Promise<SealRow[]> {
  return (await tx.all(SEAL, `${SEAL_SQL} WHERE day > ? ORDER BY day LIMIT ?`, [afterDay, limit])).map(
    toSeal,
  );
}

/** Returns the oldest seals that the transparency log does not have. */
export async function readUnloggedSeals(tx: ReadTx, limit: number): Promise<SealRow[]> {
  const where = "log_index IS NULL OR (root <> '' AND root_index IS NULL)";
  return (await tx.all(SEAL, `${SEAL_SQL} WHERE ${where} ORDER BY day LIMIT ?`, [limit])).map(toSeal);
}

/** Returns the seal of a record's day; undefined for a record of the open day. */
export async function findSeal(tx: ReadTx, id: number): Promise<SealRow | undefined> {
  const where = "first_id <= ? AND last_id >= ?";
  const found = await tx.get(SEAL, `${SEAL_SQL} WHERE ${where}`, [id, id]);
  return found && toSeal(found);
}

/**
 * Records the positions of a seal in the transparency log. `rootIndex` is null if the log has no leaf of the seal with
 * its Merkle root.
 */
export async function setSealLogged(
  tx: WriteTx,
  day: string,
  { index, rootIndex }: { readonly index: number; readonly rootIndex: number | null },
): Promise<void> {
  await tx.run("UPDATE audit_seals SET log_index = ?, root_index = ? WHERE day = ?", [index, rootIndex, day]);
}

function toSeal(row: RowOf<typeof SEAL>): SealRow {
  return {
    ...{ day: row.day, firstSequence: row.first_id, lastSequence: row.last_id },
    ...{ logIndex: row.log_index, rootIndex: row.root_index },
    ...{ previousHead: headOf(row.previous_head), head: headOf(row.head) },
    ...(row.root !== "" && { rootHash: headOf(row.root) }),
  };
}
