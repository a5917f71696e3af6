import type { LogEntryKind, TreeNode } from "@depute/dct/transparency";
import { bytes, integer, oneOf, type ReadTx, row, type WriteTx } from "@depute/store";

const HASH_ROW = row({ hash: bytes });

export interface LogState {
  /** The number of leaves. */
  size: number;
  /** Hashes of the complete subtrees of the Merkle tree, concatenated from left to right. */
  frontier: Uint8Array;
}

const LOG_STATE_ROW = row<LogState>({ size: integer, frontier: bytes });

const EMPTY_STATE: LogState = { size: 0, frontier: new Uint8Array() };

export interface LogRow {
  index: number;
  kind: LogEntryKind;
  digest: Uint8Array;
  /** Time of the append in epoch milliseconds. */
  time: number;
}

const LOG_ROW = row<LogRow>({
  index: integer,
  kind: oneOf("attestation", "verification_result", "revocation", "session_head", "audit_seal"),
  digest: bytes,
  time: integer,
});

const COLUMNS = `log_index AS "index", kind, digest, append_ms AS "time"`;

export async function readLogState(tx: ReadTx): Promise<LogState> {
  const row = await tx.get(LOG_STATE_ROW, "SELECT size, frontier FROM log_state WHERE id = 1");
  return row ?? EMPTY_STATE;
}

/** Reads the state of the log for an append, and locks it until the end of the transaction. */
export async function lockLogState(tx: WriteTx): Promise<LogState> {
  const lock = tx.dialect === "postgres" ? " FOR UPDATE" : "";
  const row = await tx.get(LOG_STATE_ROW, `SELECT size, frontier FROM log_state WHERE id = 1${lock}`);
  return row ?? EMPTY_STATE;
}

export async function writeLogState(tx: WriteTx, { size, frontier }: LogState): Promise<void> {
  await tx.run(
    `INSERT INTO log_state (id, size, frontier) VALUES (1, ?, ?)
     ON CONFLICT (id) DO UPDATE SET size = excluded.size, frontier = excluded.frontier`,
    [size, frontier],
  );
}

export async function insertLogRow(tx: WriteTx, { index, kind, digest, time }: LogRow): Promise<void> {
  await tx.run("INSERT INTO log_entries (log_index, kind, digest, append_ms) VALUES (?, ?, ?, ?)", [
    index,
    kind,
    digest,
    time,
  ]);
}

export function getLogRow(tx: ReadTx, index: number): Promise<LogRow | undefined> {
  return tx.get(LOG_ROW, `SELECT ${COLUMNS} FROM log_entries WHERE log_index = ?`, [index]);
}

/**
 * Returns the leaf of a document; undefined if there is none. If `kind` is undefined and leaves of several kinds have
 * the digest, returns the leaf of the alphabetically first kind.
 */
export function findLogRow(tx: ReadTx, digest: Uint8Array, kind?: LogEntryKind): Promise<LogRow | undefined> {
  return kind === undefined
    ? tx.get(LOG_ROW, `SELECT ${COLUMNS} FROM log_entries WHERE digest = ? ORDER BY kind`, [digest])
    : tx.get(LOG_ROW, `SELECT ${COLUMNS} FROM log_entries WHERE digest = ? AND kind = ?`, [digest, kind]);
}

export function listLogRows(tx: ReadTx, first: number, size: number): Promise<LogRow[]> {
  return tx.all(
    LOG_ROW,
    `SELECT ${COLUMNS} FROM log_entries WHERE log_index >= ? ORDER BY log_index LIMIT ?`,
    [first, size],
  );
}

export async function insertNode(tx: WriteTx, node: TreeNode, hash: Uint8Array): Promise<void> {
  await tx.run("INSERT INTO log_nodes (position, hash) VALUES (?, ?)", [positionOf(node), hash]);
}

/**
 * Returns the hash of a node in the Merkle tree.
 *
 * @throws Error if the node's subtree is not complete yet
 */
export async function readNode(tx: ReadTx, node: TreeNode): Promise<Uint8Array> {
  const row = await tx.get(HASH_ROW, "SELECT hash FROM log_nodes WHERE position = ?", [positionOf(node)]);
  if (row === undefined) throw new Error(`the log has no node ${node.level}/${node.index}`);
  return row.hash;
}

function positionOf({ level, index }: TreeNode): number {
  return level * 2 ** 40 + index;
}
