import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  consistencyRanges,
  foldNodes,
  inclusionRanges,
  type LeafRange,
  leafHash,
  nodesOf,
  verifyConsistency,
  verifyInclusion,
} from "./merkle.ts";

const sha256 = (data: Uint8Array) => new Uint8Array(createHash("sha256").update(data).digest());
const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString("hex");

/** MTH, exactly as in RFC 6962 2.1. */
function treeHash(leaves: readonly Uint8Array[]): Uint8Array {
  if (leaves.length === 0) return sha256(new Uint8Array());
  if (leaves.length === 1) return sha256(Buffer.concat([Buffer.of(0), leaves[0] ?? Buffer.of()]));
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256(Buffer.concat([Buffer.of(1), treeHash(leaves.slice(0, k)), treeHash(leaves.slice(k))]));
}

/** PATH, exactly as in RFC 6962 2.1.1. */
function path(m: number, leaves: readonly Uint8Array[]): Uint8Array[] {
  if (leaves.length === 1) return [];
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return m < k
    ? [...path(m, leaves.slice(0, k)), treeHash(leaves.slice(k))]
    : [...path(m - k, leaves.slice(k)), treeHash(leaves.slice(0, k))];
}

/** SUBPROOF, exactly as in RFC 6962 2.1.2. */
function subproof(m: number, leaves: readonly Uint8Array[], complete: boolean): Uint8Array[] {
  if (m === leaves.length) return complete ? [] : [treeHash(leaves)];
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return m <= k
    ? [...subproof(m, leaves.slice(0, k), complete), treeHash(leaves.slice(k))]
    : [...subproof(m - k, leaves.slice(k), false), treeHash(leaves.slice(0, k))];
}

const leavesOf = (count: number) => Array.from({ length: count }, (_, i) => Buffer.from(`leaf ${i}`));

/** Computes the hash of a range from its nodes, as a store of nodes provides them. */
function rangeHash(leaves: readonly Uint8Array[], range: LeafRange): Uint8Array {
  const hashes = nodesOf(range).map(({ level, index }) =>
    treeHash(leaves.slice(index * 2 ** level, (index + 1) * 2 ** level)),
  );
  return foldNodes(sha256, hashes);
}

// The usual test leaves and roots of Certificate Transparency implementations.
const VECTORS: [leaf: string, root: string][] = [
  ["", "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"],
  ["00", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"],
  ["10", "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"],
  ["2021", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"],
  ["3031", "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"],
  ["40414243", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"],
  ["5051525354555657", "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"],
  ["606162636465666768696a6b6c6d6e6f", "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"],
];

test("the roots equal the published ones, also without leaves", () => {
  const leaves = VECTORS.map(([leaf]) => Buffer.from(leaf, "hex"));
  for (const [i, [, root]] of VECTORS.entries()) {
    expect(hex(rangeHash(leaves, { begin: 0, end: i + 1 }))).toBe(root);
  }
  expect(hex(foldNodes(sha256, []))).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
});

test("proofs follow the text's definition, for every leaf and every pair of sizes up to 33", () => {
  for (let size = 1; size <= 33; size++) {
    const leaves = leavesOf(size);
    const root = treeHash(leaves);
    for (let index = 0; index < size; index++) {
      const proof = inclusionRanges(index, size).map((range) => rangeHash(leaves, range));
      expect(proof).toEqual(path(index, leaves).map((hash) => new Uint8Array(hash)));
      const leaf = leafHash(sha256, leaves[index] ?? Buffer.of());
      expect(verifyInclusion(sha256, { index, treeSize: size, leaf, root, proof })).toBe(true);
    }
    for (let first = 1; first <= size; first++) {
      const proof = consistencyRanges(first, size).map((range) => rangeHash(leaves, range));
      expect(proof).toEqual(subproof(first, leaves, true));
      const firstRoot = treeHash(leaves.slice(0, first));
      const claim = { firstSize: first, firstRoot, secondSize: size, secondRoot: root, proof };
      expect(verifyConsistency(sha256, claim)).toBe(true);
    }
  }
});

const treeAndLeaf = fc
  .integer({ min: 1, max: 70 })
  .chain((size) => fc.record({ size: fc.constant(size), index: fc.nat(size - 1) }));

test("a proof of another leaf, index, size or root is refused", () => {
  fc.assert(
    fc.property(treeAndLeaf, fc.nat(), fc.nat(255), ({ size, index }, at, flip) => {
      const leaves = leavesOf(size);
      const leaf = leafHash(sha256, leaves[index] ?? Buffer.of());
      const proof = inclusionRanges(index, size).map((range) => rangeHash(leaves, range));
      const good = { index, treeSize: size, leaf, root: treeHash(leaves), proof };
      const broken = (hash: Uint8Array) => hash.map((byte, i) => (i === at % 32 ? byte ^ (flip | 1) : byte));
      expect(verifyInclusion(sha256, { ...good, leaf: broken(leaf) })).toBe(false);
      expect(verifyInclusion(sha256, { ...good, root: broken(good.root) })).toBe(false);
      expect(verifyInclusion(sha256, { ...good, proof: [...proof, leaf] })).toBe(false);
      expect(verifyInclusion(sha256, { ...good, index: size })).toBe(false);
      if (size > 1) {
        const other = (index + 1 + (at % (size - 1))) % size;
        expect(verifyInclusion(sha256, { ...good, index: other })).toBe(false);
        expect(verifyInclusion(sha256, { ...good, proof: proof.slice(1) })).toBe(false);
        const one = at % proof.length;
        const changed = proof.map((hash, i) => (i === one ? broken(hash) : hash));
        expect(verifyInclusion(sha256, { ...good, proof: changed })).toBe(false);
      }
    }),
  );
});

test("a log with a changed or lost leaf has no proof of consistency", () => {
  fc.assert(
    fc.property(treeAndLeaf, fc.integer({ min: 1, max: 20 }), ({ size, index }, more) => {
      const before = leavesOf(size);
      const after = leavesOf(size + more);
      const tampered = after.with(index, Buffer.from("changed"));
      const proof = consistencyRanges(size, size + more).map((range) => rangeHash(tampered, range));
      const claim = { firstSize: size, firstRoot: treeHash(before), secondSize: size + more, proof };
      expect(verifyConsistency(sha256, { ...claim, secondRoot: treeHash(tampered) })).toBe(false);
      expect(verifyConsistency(sha256, { ...claim, secondRoot: treeHash(after), secondSize: size })).toBe(
        false,
      );
      expect(
        verifyConsistency(sha256, { ...claim, secondRoot: treeHash(after), proof: proof.slice(1) }),
      ).toBe(false);
    }),
  );
});

test.each([
  ["a negative index", { index: -1 }],
  ["a fractional index", { index: 0.5 }],
  ["a size that is not a number", { treeSize: Number.NaN }],
  ["a malformed hash", { leaf: new Uint8Array(31) }],
])("%s is refused", (_, change) => {
  const leaf = leafHash(sha256, Buffer.from("x"));
  const good = { index: 0, treeSize: 1, leaf, root: leaf, proof: [] };
  expect(verifyInclusion(sha256, good)).toBe(true);
  expect(verifyInclusion(sha256, { ...good, ...change })).toBe(false);
});

test("sizes over 32 bits have proofs of at most 40 hashes", () => {
  const size = 2 ** 40 - 3;
  expect(inclusionRanges(size - 1, size).length).toBeLessThanOrEqual(40);
  for (const range of consistencyRanges(2 ** 35 + 1, size)) {
    for (const { level, index } of nodesOf(range)) {
      expect(Number.isSafeInteger(index)).toBe(true);
      expect((index + 1) * 2 ** level).toBeLessThanOrEqual(size);
    }
  }
});
