import { decodeBase64Url } from "@depute/core";

/** 32-bit words kept of an id: 128 bits, so that nobody finds a second block with the same ones. */
const WORDS = 4;
const FIRST_SLOTS = 1024;
const LOAD = 0.75;

/**
 * A set of revocation ids that only grows: one flat table with open addressing, 22 to 43 bytes an id.
 *
 * A plain Set of strings takes four times as much, and every verification of every token asks this one.
 */
export class RevokedIds {
  #slots = FIRST_SLOTS;
  #words = new Uint32Array(FIRST_SLOTS * WORDS);
  #size = 0;
  // Who can choose ids cannot choose where they fall, and so cannot pile them up.
  readonly #seed = crypto.getRandomValues(new Uint32Array(2)).map((word) => word | 1);

  get size(): number {
    return this.#size;
  }

  /** Bytes of the table. */
  get bytes(): number {
    return this.#words.byteLength;
  }

  has(revocationId: string): boolean {
    const id = wordsOf(revocationId);
    return id !== undefined && this.#holds(this.#find(id));
  }

  /** Adds an id. Throws RangeError for what is none: a revocation must not be lost in silence. */
  add(revocationId: string): void {
    const id = wordsOf(revocationId);
    if (id === undefined) throw new RangeError("not a revocation id");
    this.#insert(id);
    if (this.#size > this.#slots * LOAD) this.#grow();
  }

  #insert(id: Uint32Array): void {
    const at = this.#find(id);
    if (this.#holds(at)) return;
    this.#words.set(id, at);
    this.#size++;
  }

  /** Where the id is, or the empty slot where it would be. */
  #find(id: Uint32Array): number {
    const [a = 0, b = 0] = id;
    const [m = 1, n = 1] = this.#seed;
    // The high bits of a product depend on all of its factors' bits.
    const mixed = (Math.imul(a, m) ^ Math.imul(b, n)) >>> 0;
    let slot = (Math.imul(mixed ^ (mixed >>> 15), m) >>> 0) % this.#slots;
    for (;;) {
      const at = slot * WORDS;
      if (!this.#holds(at) || id.every((word, i) => this.#words[at + i] === word)) return at;
      slot = (slot + 1) % this.#slots;
    }
  }

  /** No id is all zero, see wordsOf. */
  #holds(at: number): boolean {
    for (let i = 0; i < WORDS; i++) if (this.#words[at + i] !== 0) return true;
    return false;
  }

  #grow(): void {
    const old = this.#words;
    this.#slots *= 2;
    this.#words = new Uint32Array(this.#slots * WORDS);
    this.#size = 0;
    for (let at = 0; at < old.length; at += WORDS) {
      const id = old.subarray(at, at + WORDS);
      if (id.some((word) => word !== 0)) this.#insert(id);
    }
  }
}

function wordsOf(revocationId: string): Uint32Array | undefined {
  const bytes = decodeBase64Url(revocationId);
  if (bytes?.length !== 32) return undefined;
  const id = new Uint32Array(bytes.slice(0, WORDS * 4).buffer);
  // Zero is what an empty slot looks like. The one id in 2^128 that begins so shares a slot with its neighbour.
  if (id.every((word) => word === 0)) id[0] = 1;
  return id;
}
