import type { HashedNode, TreeNode } from "@depute/dct/transparency";
import { bytes, type ReadTx, row, type WriteTx } from "@depute/store";

/**
 * A tile is a run of TILE_SIZE records. The store keeps the nodes of a day's tree at this level and above. `auditPath`
 * computes lower nodes from the records of one tile.
 */
export const TILE_LEVELS = 8;

/** The number of records in a tile: 256. */
export const TILE_SIZE = 2 ** TILE_LEVELS;

const HASH_BYTES = 32;

const HASHES = row({ hashes: bytes });

/**
 * Inserts those nodes of a day's tree that are at TILE_LEVELS or above.
 *
 * @param firstId the id of the day's first record
 * @param nodes complete nodes of any level
 */
export async function insertSubtrees(
  tx: WriteTx,
  firstId: number,
  nodes: readonly HashedNode[],
): Promise<void> {
  for (const { level, index, hash } of nodes)
    if (level >= TILE_LEVELS) await insertNode(tx, firstId, { level, index }, hash);
}

/** Returns the hash of a node at `TILE_LEVELS` or above; undefined if the store has no such node. */
export async function readSubtree(
  tx: ReadTx,
  firstId: number,
  node: TreeNode,
): Promise<Uint8Array | undefined> {
  return readHashes(tx, firstId, node);
}

/** Returns the hashes of a tile's deleted records. Deleted records are always the first records of their tile. */
export async function readDeletedLeaves(tx: ReadTx, firstId: number, tile: number): Promise<Uint8Array[]> {
  return splitHashes((await readHashes(tx, firstId, { level: 0, index: tile })) ?? new Uint8Array());
}

/** Stores the hashes of a tile's deleted records, in place of the hashes of the day's earlier tiles. */
export async function replaceDeletedLeaves(
  tx: WriteTx,
  firstId: number,
  { tile, hashes }: { readonly tile: number; readonly hashes: readonly Uint8Array[] },
): Promise<void> {
  await tx.run("DELETE FROM audit_nodes WHERE first_id = ? AND level = 0", [firstId]);
  if (hashes.length > 0) await insertNode(tx, firstId, { level: 0, index: tile }, Buffer.concat(hashes));
}

/** Deletes the nodes of all days whose first record is before the record `firstId`. */
export async function forgetNodes(tx: WriteTx, firstId: number): Promise<void> {
  await tx.run("DELETE FROM audit_nodes WHERE first_id < ?", [firstId]);
}

/** Splits concatenated hashes. */
export function splitHashes(hashes: Uint8Array): Uint8Array[] {
  return Array.from({ length: hashes.length / HASH_BYTES }, (_, at) =>
    hashes.subarray(at * HASH_BYTES, (at + 1) * HASH_BYTES),
  );
}

async function insertNode(
  tx: WriteTx,
  firstId: number,
  { level, index }: TreeNode,
  hashes: Uint8Array,
): Promise<void> {
  await tx.run("INSERT INTO audit_nodes (first_id, level, node_index, hashes) VALUES (?, ?, ?, ?)", [
    ...[firstId, level, index],
    hashes,
  ]);
}

async function readHashes(
  tx: ReadTx,
  firstId: number,
  { level, index }: TreeNode,
): Promise<Uint8Array | undefined> {
  const found = await tx.get(
    HASHES,
    "SELECT hashes FROM audit_nodes WHERE first_id = ? AND level = ? AND node_index = ?",
    [firstId, level, index],
  );
  return found?.hashes;
}
