/**
 * The Merkle tree of a transparency log (RFC 6962 section 2.1, RFC 9162 section 2.1), independent of the
 * nodes' storage.
 */

type Sha256 = (data: Uint8Array) => Uint8Array;

const LEAF = 0;
const NODE = 1;

/**
 * Maximum number of leaves. A store that numbers nodes by level * MAX_LEAVES + index then has exact and unique
 * numbers.
 */
export const MAX_LEAVES = 2 ** 40;

/** Returns SHA-256 of 0x00 and the leaf's bytes. */
export function leafHash(sha256: Sha256, data: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + data.length);
  input[0] = LEAF;
  input.set(data, 1);
  return sha256(input);
}

/** Returns SHA-256 of 0x01, the left child's hash and the right child's hash. */
export function nodeHash(sha256: Sha256, left: Uint8Array, right: Uint8Array): Uint8Array {
  const input = new Uint8Array(1 + left.length + right.length);
  input[0] = NODE;
  input.set(left, 1);
  input.set(right, 1 + left.length);
  return sha256(input);
}

/** A node that covers 2^level leaves, beginning at leaf index * 2^level. A node never changes. */
export interface TreeNode {
  level: number;
  index: number;
}

/** A node with its hash. */
export interface HashedNode extends TreeNode {
  readonly hash: Uint8Array;
}

/** A tree that grows by one leaf after the other. It keeps the hashes of its complete subtrees, from left to right. */
export class GrowingTree {
  readonly #sha256: Sha256;
  readonly #frontier: Uint8Array[];
  #size: number;

  /** @param frontier one hash for each complete subtree of a tree with `size` leaves */
  constructor(sha256: Sha256, size = 0, frontier: readonly Uint8Array[] = []) {
    this.#sha256 = sha256;
    this.#size = size;
    this.#frontier = [...frontier];
  }

  /** The number of leaves. */
  get size(): number {
    return this.#size;
  }

  /** The hashes of the complete subtrees, from left to right. */
  get frontier(): readonly Uint8Array[] {
    return this.#frontier;
  }

  /** Returns the root hash. */
  root(): Uint8Array {
    return foldNodes(this.#sha256, this.#frontier);
  }

  /**
   * Appends a leaf.
   *
   * @param hash the leaf's hash
   * @returns the nodes that are now complete: the leaf, then the nodes above it
   */
  add(hash: Uint8Array): HashedNode[] {
    const nodes: HashedNode[] = [{ level: 0, index: this.#size, hash }];
    // As in a binary addition with carry, the new subtree merges with each complete subtree of its size.
    for (let level = 0, at = this.#size; isOdd(at); level += 1) {
      const left = this.#frontier.pop();
      if (left === undefined) throw new Error("the tree's frontier does not match its size");
      hash = nodeHash(this.#sha256, left, hash);
      at = half(at);
      nodes.push({ level: level + 1, index: at, hash });
    }
    this.#frontier.push(hash);
    this.#size += 1;
    return nodes;
  }
}

/** The leaves from `begin` (included) to `end` (excluded). */
export interface LeafRange {
  begin: number;
  end: number;
}

/**
 * Returns the nodes that cover a range of leaves, from left to right. The range must begin at a multiple of the largest
 * power of two that fits into its length.
 */
export function nodesOf({ begin, end }: LeafRange): TreeNode[] {
  const nodes: TreeNode[] = [];
  for (let at = begin; at < end; ) {
    const level = log2(end - at);
    nodes.push({ level, index: at / 2 ** level });
    at += 2 ** level;
  }
  return nodes;
}

/** Returns the hash of leaves from the hashes of the nodes that cover them, in the order of nodesOf. */
export function foldNodes(sha256: Sha256, hashes: readonly Uint8Array[]): Uint8Array {
  const last = hashes.at(-1);
  // The hash of a tree without leaves (RFC 6962 2.1).
  if (last === undefined) return sha256(new Uint8Array());
  return hashes.slice(0, -1).reduceRight((right, left) => nodeHash(sha256, left, right), last);
}

/** Returns the ranges whose hashes prove that leaf `index` is in the tree of `size` leaves, from the leaf upwards. */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  const path: LeafRange[] = [];
  let [begin, end] = [0, size];
  while (end - begin > 1) {
    const middle = begin + split(end - begin);
    if (index < middle) {
      path.push({ begin: middle, end });
      end = middle;
    } else {
      path.push({ begin, end: middle });
      begin = middle;
    }
  }
  return path.reverse();
}

/** Returns the ranges whose hashes prove that the tree of `second` leaves begins with the tree of `first` leaves. */
export function consistencyRanges(first: number, second: number): LeafRange[] {
  if (first === 0 || first === second) return [];
  const path: LeafRange[] = [];
  let [begin, end] = [0, second];
  // Whether the range still begins at the first leaf. If so, the proof omits the hash of the range, because this hash
  // is the root of the tree with `first` leaves.
  let whole = true;
  while (first !== end) {
    const startsAtFirstLeaf = begin + split(end - begin);
    if (first <= startsAtFirstLeaf) {
      path.push({ begin: startsAtFirstLeaf, end });
      end = startsAtFirstLeaf;
    } else {
      path.push({ begin, end: startsAtFirstLeaf });
      begin = startsAtFirstLeaf;
      whole = false;
    }
  }
  if (!whole) path.push({ begin, end });
  return path.reverse();
}

/** The proof that a log includes a leaf. */
export interface Inclusion {
  /** Position of the leaf, from 0. */
  index: number;
  treeSize: number;
  leaf: Uint8Array;
  root: Uint8Array;
  proof: readonly Uint8Array[];
}

/** Whether the tree with the root `root` contains a leaf's hash (RFC 9162 2.1.3.2). Never throws. */
export function verifyInclusion(sha256: Sha256, { index, treeSize, leaf, root, proof }: Inclusion): boolean {
  if (!isCount(index) || !isCount(treeSize) || index >= treeSize || !areHashes([leaf, root, ...proof])) {
    return false;
  }
  let [at, last] = [index, treeSize - 1];
  let hash = leaf;
  for (const other of proof) {
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      hash = nodeHash(sha256, other, hash);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      hash = nodeHash(sha256, hash, other);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && equal(hash, root);
}

/** The proof that a log's later state extends an earlier one. */
export interface Consistency {
  firstSize: number;
  firstRoot: Uint8Array;
  secondSize: number;
  secondRoot: Uint8Array;
  proof: readonly Uint8Array[];
}

/** Whether the second tree only added leaves to the first (RFC 9162 2.1.4.2). Never throws. */
export function verifyConsistency(sha256: Sha256, claim: Consistency): boolean {
  const { firstSize, firstRoot, secondSize, secondRoot, proof } = claim;
  if (!isCount(firstSize) || !isCount(secondSize) || firstSize > secondSize) return false;
  if (!areHashes([firstRoot, secondRoot, ...proof])) return false;
  if (firstSize === secondSize) return proof.length === 0 && equal(firstRoot, secondRoot);
  if (firstSize === 0) return proof.length === 0 && equal(firstRoot, foldNodes(sha256, []));
  const path = Number.isInteger(Math.log2(firstSize)) ? [firstRoot, ...proof] : [...proof];
  let [at, last] = [firstSize - 1, secondSize - 1];
  while (isOdd(at)) [at, last] = [half(at), half(last)];
  const start = path.shift();
  if (start === undefined) return false;
  let [first, second] = [start, start];
  for (const other of path) {
    if (last === 0) return false;
    if (isOdd(at) || at === last) {
      first = nodeHash(sha256, other, first);
      second = nodeHash(sha256, other, second);
      while (!isOdd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      second = nodeHash(sha256, second, other);
    }
    [at, last] = [half(at), half(last)];
  }
  return last === 0 && equal(first, firstRoot) && equal(second, secondRoot);
}

/** Returns the largest power of two below a count of at least two (RFC 6962 2.1). */
function split(count: number): number {
  return 2 ** log2(count - 1);
}

// Bit operators are limited to 32 bits, so `clz32` computes only the part below 2^31.
function log2(count: number): number {
  return count < 2 ** 31 ? 31 - Math.clz32(count) : 31 + log2(Math.floor(count / 2 ** 31));
}

function isOdd(count: number): boolean {
  return count % 2 === 1;
}

function half(count: number): number {
  return Math.floor(count / 2);
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0 && value <= MAX_LEAVES;
}

function areHashes(hashes: readonly Uint8Array[]): boolean {
  return hashes.every((hash) => hash instanceof Uint8Array && hash.length === 32);
}

function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}
