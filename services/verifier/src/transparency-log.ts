import type { Clock } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import {
  consistencyRanges,
  foldNodes,
  GrowingTree,
  inclusionRanges,
  type LeafRange,
  type LogEntryKind,
  type LogHead,
  leafHash,
  logEntryBytes,
  MAX_LEAVES,
  nodesOf,
  signLogHead,
} from "@depute/dct/transparency";
import type { ReadTx, WriteTx } from "@depute/store";
import { tooMany } from "./rules/limits.ts";
import {
  findLogRow,
  insertLogRow,
  insertNode,
  type LogState,
  lockLogState,
  readLogState,
  readNode,
  writeLogState,
} from "./store/log.ts";

const HASH_BYTES = 32;

export interface SignedHead {
  head: LogHead;
  signature: Uint8Array;
}

/**
 * The transparency log (RFC 6962 2.1). The transaction that stores a document also appends its leaf, so log and store
 * always match. The store keeps the hashes of complete subtrees. An append writes two nodes on average, and a proof
 * reads at most two nodes per level.
 */
export class TransparencyLog {
  readonly #engine: CryptoEngine;
  readonly #keypair: Keypair;
  readonly #clock: Clock;
  readonly #listeners: (() => void)[] = [];

  constructor(engine: CryptoEngine, keypair: Keypair, clock: Clock) {
    this.#engine = engine;
    this.#keypair = keypair;
    this.#clock = clock;
  }

  /** The principal of the key that signs heads. */
  get principal(): string {
    return this.#keypair.principal.id;
  }

  /** Adds a listener. The log calls it after each durable append of this process. */
  onAppend(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /**
   * Appends a signed document. If the document already has a leaf, appends nothing.
   *
   * @param canonical canonical JSON of the document; the leaf contains the digest of this text
   * @returns the leaf's index in the log, starting at 0
   * @throws DeputeError LIMIT_EXCEEDED
   */
  async append(tx: WriteTx, kind: LogEntryKind, canonical: string): Promise<number> {
    const { sha256 } = this.#engine;
    const digest = sha256(Buffer.from(canonical));
    const existingRow = await findLogRow(tx, digest, kind);
    if (existingRow !== undefined) return existingRow.index;
    const state = await lockLogState(tx);
    const index = state.size;
    if (index >= MAX_LEAVES) throw tooMany("log_entries", MAX_LEAVES);
    const time = this.#clock.now();
    await insertLogRow(tx, { index, kind, digest, time });

    const tree = new GrowingTree(sha256, index, split(state.frontier));
    const nodes = tree.add(leafHash(sha256, logEntryBytes({ kind, digest, time })));
    for (const { hash, ...node } of nodes) await insertNode(tx, node, hash);
    await writeLogState(tx, { size: tree.size, frontier: Buffer.concat(tree.frontier) });
    tx.afterCommit(() => {
      for (const listener of this.#listeners) listener();
    });
    return index;
  }

  /** Signs and returns the current tree head. */
  async head(tx: ReadTx): Promise<SignedHead> {
    return this.#sign(await readLogState(tx));
  }

  /** Returns an inclusion proof: the hashes from a leaf to the root of a tree with `size` leaves. */
  inclusion(tx: ReadTx, index: number, size: number): Promise<Uint8Array[]> {
    return this.#hashes(tx, inclusionRanges(index, size));
  }

  consistency(tx: ReadTx, first: number, second: number): Promise<Uint8Array[]> {
    return this.#hashes(tx, consistencyRanges(first, second));
  }

  async #hashes(tx: ReadTx, ranges: readonly LeafRange[]): Promise<Uint8Array[]> {
    const hashes: Uint8Array[] = [];
    for (const range of ranges) {
      const nodes: Uint8Array[] = [];
      for (const node of nodesOf(range)) nodes.push(await readNode(tx, node));
      hashes.push(foldNodes(this.#engine.sha256, nodes));
    }
    return hashes;
  }

  #sign({ size, frontier }: LogState): SignedHead {
    const head: LogHead = {
      log: this.#keypair.principal.id,
      treeSize: size,
      rootHash: foldNodes(this.#engine.sha256, split(frontier)),
      time: this.#clock.now(),
    };
    return { head, signature: signLogHead(this.#engine, head, this.#keypair) };
  }
}

function split(frontier: Uint8Array): Uint8Array[] {
  const count = frontier.length / HASH_BYTES;
  return Array.from({ length: count }, (_, i) => frontier.subarray(i * HASH_BYTES, (i + 1) * HASH_BYTES));
}
