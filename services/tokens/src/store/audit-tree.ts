import type { CryptoEngine } from "@depute/dct";
import {
  foldNodes,
  GrowingTree,
  inclusionRanges,
  leafHash,
  nodesOf,
  type TreeNode,
} from "@depute/dct/transparency";
import { integer, nullable, type ReadTx, row, type WriteTx } from "@depute/store";
import { auditLine } from "../rules/audit-message.ts";
import {
  forgetNodes,
  readDeletedLeaves,
  readSubtree,
  replaceDeletedLeaves,
  TILE_LEVELS,
  TILE_SIZE,
} from "./audit-nodes.ts";
import { readDecisions } from "./audit-rows.ts";
import { findSeal, openTree, readState, type SealRow } from "./audit-seal-rows.ts";

type Sha256 = CryptoEngine["sha256"];

const LAST = row({ id: nullable(integer) });

/** The records of one day: the id of the first one, and their number. */
interface Day {
  readonly firstId: number;
  readonly size: number;
}

/**
 * Returns the audit path from a record to the root of its day's seal. Reads at most two tiles of records, and two nodes
 * of each level above.
 *
 * @param seal the seal of the record's day, with a root
 * @returns undefined if a needed record or node is missing
 */
export async function auditPath(
  tx: ReadTx,
  sha256: Sha256,
  { seal, id }: { readonly seal: SealRow; readonly id: number },
): Promise<Uint8Array[] | undefined> {
  const day = { firstId: seal.firstSequence, size: seal.lastSequence - seal.firstSequence + 1 };
  const tiles = new Map<number, readonly Uint8Array[] | undefined>();
  const readOnce = async (tile: number) => {
    if (!tiles.has(tile)) tiles.set(tile, await readTile(tx, sha256, day, tile));
    return tiles.get(tile);
  };
  const hashOf = async (node: TreeNode) => {
    if (node.level >= TILE_LEVELS) return readSubtree(tx, day.firstId, node);
    const begin = node.index * 2 ** node.level;
    const leaves = await readOnce(Math.floor(begin / TILE_SIZE));
    return leaves && rootOf(sha256, leaves.slice(begin % TILE_SIZE, (begin % TILE_SIZE) + 2 ** node.level));
  };
  const path: Uint8Array[] = [];
  for (const range of inclusionRanges(id - day.firstId, day.size)) {
    const nodes: Uint8Array[] = [];
    for (const node of nodesOf(range)) {
      const hash = await hashOf(node);
      if (hash === undefined) return undefined;
      nodes.push(hash);
    }
    path.push(foldNodes(sha256, nodes));
  }
  return path;
}

/**
 * Deletes the oldest decisions that were appended before a time; returns their number. Append times ascend with ids, so
 * no index on times is needed. The hashes of deleted records stay while a record of their tile stays. So each record
 * that can be read can also be proven.
 */
export async function forgetDecisions(
  tx: WriteTx,
  sha256: Sha256,
  { before, limit }: { readonly before: number; readonly limit: number },
): Promise<number> {
  const found = await tx.get(
    LAST,
    `SELECT MAX(id) AS id FROM (SELECT id, record_ms FROM audit ORDER BY id LIMIT ?) AS oldest
     WHERE record_ms < ?`,
    [limit, before],
  );
  const last = found?.id ?? undefined;
  if (last === undefined) return 0;
  await keepHashes(tx, sha256, last);
  return (await tx.run("DELETE FROM audit WHERE id <= ?", [last])).changes;
}

/**
 * Stores the hashes that later proofs need of the records up to the id `last`. Call this function before these records
 * are deleted.
 */
async function keepHashes(tx: WriteTx, sha256: Sha256, last: number): Promise<void> {
  const seal = await findSeal(tx, last);
  const state = seal === undefined ? await readState(tx) : undefined;
  const firstId = seal?.firstSequence ?? state?.firstId ?? 0;
  const isTree = state === undefined ? seal?.rootHash !== undefined : openTree(sha256, state) !== undefined;
  // No record of the day can be proven later, because the day has no tree, or all its records are deleted.
  if (!isTree || seal?.lastSequence === last) return forgetNodes(tx, last + 1);
  await forgetNodes(tx, firstId);
  const size = last - firstId + 1;
  const tile = Math.floor(size / TILE_SIZE);
  const leaves = await readTile(tx, sha256, { firstId, size }, tile);
  if (leaves !== undefined) await replaceDeletedLeaves(tx, firstId, { tile, hashes: leaves });
}

/** Returns the leaves of a tile; undefined if one is missing. */
async function readTile(
  tx: ReadTx,
  sha256: Sha256,
  { firstId, size }: Day,
  tile: number,
): Promise<readonly Uint8Array[] | undefined> {
  const begin = tile * TILE_SIZE;
  const count = Math.min(TILE_SIZE, size - begin);
  const leaves = await readDeletedLeaves(tx, firstId, tile);
  const next = firstId + begin + leaves.length;
  const entries = await readDecisions(tx, next - 1, count - leaves.length);
  if (entries.some(({ id }, at) => id !== next + at)) return undefined;
  leaves.push(...entries.map((entry) => leafHash(sha256, auditLine(entry))));
  return leaves.length === count ? leaves : undefined;
}

function rootOf(sha256: Sha256, leaves: readonly Uint8Array[]): Uint8Array {
  const tree = new GrowingTree(sha256);
  for (const leaf of leaves) tree.add(leaf);
  return tree.root();
}
