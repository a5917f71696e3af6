import { createHash } from "node:crypto";

/**
 * The functions of this file compute a Merkle tree as RFC 9162 section 2.1 describes it, without code of the
 * platform.
 */

function sha256(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash("sha256");
  for (const part of parts) hash.update(part);
  return hash.digest();
}

const leafOf = (leaf: Uint8Array): Buffer => sha256(Buffer.of(0), leaf);
const nodeOf = (left: Uint8Array, right: Uint8Array): Buffer => sha256(Buffer.of(1), left, right);

/** Returns the root of a tree over these leaves. */
export function rootOf(leaves: readonly Uint8Array[]): Buffer {
  if (leaves.length === 0) return sha256();
  const [only] = leaves;
  if (leaves.length === 1 && only !== undefined) return leafOf(only);
  let left = 1;
  while (left * 2 < leaves.length) left *= 2;
  return nodeOf(rootOf(leaves.slice(0, left)), rootOf(leaves.slice(left)));
}

/** Whether a proof shows that the second tree continues the first one (RFC 9162 section 2.1.4.2). */
export function isConsistent(
  first: { readonly size: number; readonly root: Uint8Array },
  second: { readonly size: number; readonly root: Uint8Array },
  proof: readonly Uint8Array[],
): boolean {
  if (first.size === 0) return true;
  if (first.size === second.size) return proof.length === 0 && Buffer.compare(first.root, second.root) === 0;
  const isPowerOfTwo = (first.size & (first.size - 1)) === 0;
  const [start, ...rest] = isPowerOfTwo ? [first.root, ...proof] : proof;
  if (start === undefined) return false;
  let fn = first.size - 1;
  let sn = second.size - 1;
  while (fn & 1) {
    fn >>= 1;
    sn >>= 1;
  }
  let firstRoot: Buffer = Buffer.from(start);
  let secondRoot: Buffer = Buffer.from(start);
  for (const hash of rest) {
    if (sn === 0) return false;
    if (fn & 1 || fn === sn) {
      firstRoot = nodeOf(hash, firstRoot);
      secondRoot = nodeOf(hash, secondRoot);
      while (fn !== 0 && !(fn & 1)) {
        fn >>= 1;
        sn >>= 1;
      }
    } else secondRoot = nodeOf(secondRoot, hash);
    fn >>= 1;
    sn >>= 1;
  }
  return sn === 0 && firstRoot.equals(Buffer.from(first.root)) && secondRoot.equals(Buffer.from(second.root));
}
