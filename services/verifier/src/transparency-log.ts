import type { Clock } from "@depute/core";
import type { CryptoEngine, Keypair } from "@depute/dct";
import {
  consistencyRanges,
  foldNodes,
  inclusionRanges,
  type LeafRange,
  type LogEntryKind,
  type LogHead,
  leafHash,
  logEntryBytes,
  MAX_LEAVES,
  nodeHash,
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
 * The transparency log (RFC 6962 2.1). A leaf is appended in the transaction that stores what it is about, so the log
 * has neither more nor less than the store. Nodes are kept as soon as their leaves are complete: appending touches two
 * nodes on average, and a proof reads at most two for each level.
 */
export class TransparencyLog {
  readonly #engine: CryptoEngine;
  readonly #keypair: Keypair;
  readonly #clock: Clock;

  constructor(engine: CryptoEngine, keypair: Keypair, clock: Clock) {
    this.#engine = engine;
    this.#keypair = keypair;
    this.#clock = clock;
  }

  /**
   * Appends a signed document, once. Gives its place in the log, from 0.
   *
   * @param canonical the document's canonical JSON, of which the leaf holds the digest
   */
  async append(tx: WriteTx, kind: LogEntryKind, canonical: string): Promise<number> {
    const { sha256 } = this.#engine;
    const digest = sha256(Buffer.from(canonical));
    const known = await findLogRow(tx, digest, kind);
    if (known !== undefined) return known.index;
    const state = await readLogState(tx);
    const index = state.size;
    if (index >= MAX_LEAVES) throw tooMany("log_entries", MAX_LEAVES);
    const time = this.#clock.now();
    await insertLogRow(tx, { index, kind, digest, time });

    const frontier = split(state.frontier);
    let hash = leafHash(sha256, logEntryBytes({ kind, digest, time }));
    await insertNode(tx, { level: 0, index }, hash);
    // As when one is added to a binary number, each complete node on the way joins the new one.
    for (let level = 0, at = index; at % 2 === 1; level += 1) {
      const left = frontier.pop();
      if (left === undefined) throw new Error("the log's frontier does not fit its size");
      hash = nodeHash(sha256, left, hash);
      at = Math.floor(at / 2);
      await insertNode(tx, { level: level + 1, index: at }, hash);
    }
    await writeLogState(tx, { size: index + 1, frontier: Buffer.concat([...frontier, hash]) });
    return index;
  }

  /** The present state, signed now. */
  async head(tx: ReadTx): Promise<SignedHead> {
    return this.#sign(await readLogState(tx));
  }

  /** The hashes that lead from a leaf to the root of a tree of `size` leaves. */
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
