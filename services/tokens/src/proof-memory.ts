import type { ProofKind, SeenProof } from "./store/proof-rows.ts";

/** Characters of a principal. */
const PRINCIPAL_CHARS = 43;

/** Proofs that may be forgotten at the same time. */
type Bucket = Record<ProofKind, string[]>;

/**
 * The proofs that were used, by principal and `jti`, until each may be forgotten: about 150 bytes each, and 250 with the
 * longest `jti`. When there is no room no more is taken: to forget one would let it be used again.
 *
 * Anybody can make keys and proofs that state no more than who calls; they get half of the room, so that they cannot
 * shut out the holders of tokens.
 */
export class ProofMemory {
  readonly #max: number;
  readonly #keys = new Set<string>();
  /** By when they may be forgotten. Proofs state whole seconds, so that there are no more of these than seconds. */
  readonly #buckets = new Map<number, Bucket>();
  #strangers = 0;
  /** When the first bucket may be forgotten. */
  #earliest = Number.POSITIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#keys.size;
  }

  has(proof: Pick<SeenProof, "principal" | "jti">): boolean {
    return this.#keys.has(keyOf(proof));
  }

  /** Whether there is no room for one of a kind. */
  isFull(kind: ProofKind): boolean {
    if (this.#keys.size >= this.#max) return true;
    return kind === "identity" && this.#strangers >= Math.ceil(this.#max / 2);
  }

  /** Remembers a proof; false when it was remembered before. */
  add(proof: SeenProof): boolean {
    const { kind, forgetTime } = proof;
    const key = keyOf(proof);
    if (this.#keys.has(key)) return false;
    this.#keys.add(key);
    let bucket = this.#buckets.get(forgetTime);
    if (bucket === undefined) {
      bucket = { identity: [], token: [] };
      this.#buckets.set(forgetTime, bucket);
      this.#earliest = Math.min(this.#earliest, forgetTime);
    }
    bucket[kind].push(key);
    if (kind === "identity") this.#strangers++;
    return true;
  }

  /** Forgets those whose time is over. */
  forget(now: number): void {
    if (now <= this.#earliest) return;
    for (const [forgetTime, { identity, token }] of this.#buckets) {
      if (forgetTime >= now) continue;
      this.#buckets.delete(forgetTime);
      for (const key of identity) this.#keys.delete(key);
      for (const key of token) this.#keys.delete(key);
      this.#strangers -= identity.length;
    }
    this.#earliest = Math.min(...this.#buckets.keys());
  }

  /** All that are remembered. */
  *entries(): Generator<SeenProof> {
    for (const [forgetTime, bucket] of this.#buckets) {
      for (const kind of ["identity", "token"] as const) {
        for (const key of bucket[kind]) {
          yield {
            principal: key.slice(0, PRINCIPAL_CHARS),
            jti: key.slice(PRINCIPAL_CHARS),
            kind,
            forgetTime,
          };
        }
      }
    }
  }
}

/** A principal has a fixed length, so no two proofs have one key. */
function keyOf({ principal, jti }: Pick<SeenProof, "principal" | "jti">): string {
  return principal + jti;
}
