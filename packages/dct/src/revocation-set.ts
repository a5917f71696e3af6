import { decodeBase64Url } from "@depute/core";
import type { RevocationView } from "./context.ts";
import { type Place, secretPlaces } from "./secret-places.ts";

/** 32-bit words of an id: all its 256 bits, so that nobody finds a second block that is taken for the first. */
const WORDS = 8;
const SHARDS = 256;
/** Characters of 256 bits in base64url. */
const ID_CHARS = 43;
const FIRST_SLOTS = 4;
/** A shard grows by this much as soon as it is so full: 43 to 60 bytes an id, once there are some thousands. */
const LOAD = 0.75;
const GROWTH = 1.4;

/**
 * Revocation ids whose revokers' right was proved (DelegateOS 4.2), in packed tables: at most 64 bytes an id in memory
 * where there are 10,000 or more, in place of some 200 as texts in a Set. A verifier asks it about every block.
 *
 * An id falls into one of 256 tables with open addressing, each of which grows by itself, so that no addition waits
 * for the whole to be copied. The place depends on secret numbers: who can choose ids, by making blocks until he likes
 * their digest, cannot pile them up.
 */
export class RevocationSet implements RevocationView {
  readonly #shards: Shard[] = [];
  readonly #place = secretPlaces(WORDS);
  #size = 0;

  /** How many ids there are. */
  get size(): number {
    return this.#size;
  }

  /** Bytes of the tables. */
  get bytes(): number {
    return this.#shards.reduce((sum, { words }) => sum + words.byteLength, 0);
  }

  /** Whether a block is revoked, as a verifier asks; the right of each entry was proved before it was added. */
  isRevoked(revocationId: string): boolean {
    return this.has(revocationId);
  }

  /** Whether an id is in the set. False for what is no id. */
  has(revocationId: string): boolean {
    if (this.#size === 0) return false;
    const id = wordsOf(revocationId);
    if (id === undefined) return false;
    const place = this.#place(id);
    return this.#shards[place >>> 24]?.has(id, place) ?? false;
  }

  /** Adds an id; false when it was there. Throws RangeError for what is none: a revocation must not be lost in silence. */
  add(revocationId: string): boolean {
    const id = wordsOf(revocationId);
    if (id === undefined) throw new RangeError("not a revocation id");
    const place = this.#place(id);
    while (this.#shards.length < SHARDS) this.#shards.push(new Shard());
    const isNew = this.#shards[place >>> 24]?.add(id, place, this.#place) ?? false;
    if (isNew) this.#size++;
    return isNew;
  }

  /**
   * Takes an id out; false when it was not there. Only for a block that is known to have expired, clock skew included:
   * a revocation is never undone.
   */
  delete(revocationId: string): boolean {
    const id = wordsOf(revocationId);
    if (id === undefined) return false;
    const place = this.#place(id);
    const wasThere = this.#shards[place >>> 24]?.delete(id, place, this.#place) ?? false;
    if (wasThere) this.#size--;
    return wasThere;
  }
}

/** One table with open addressing. A slot of zeros is empty; the id that is all zero is kept apart. */
class Shard {
  words = new Uint32Array(0);
  #slots = 0;
  #used = 0;
  #hasZero = false;

  has(id: Uint32Array, place: number): boolean {
    if (isZero(id)) return this.#hasZero;
    return this.#used > 0 && !this.#isEmpty(this.#find(id, place));
  }

  add(id: Uint32Array, place: number, placeOf: Place): boolean {
    if (isZero(id)) {
      const isNew = !this.#hasZero;
      this.#hasZero = true;
      return isNew;
    }
    if (this.#used + 1 > this.#slots * LOAD) this.#grow(placeOf);
    const slot = this.#find(id, place);
    if (!this.#isEmpty(slot)) return false;
    this.words.set(id, slot * WORDS);
    this.#used++;
    return true;
  }

  delete(id: Uint32Array, place: number, placeOf: Place): boolean {
    if (isZero(id)) {
      const wasThere = this.#hasZero;
      this.#hasZero = false;
      return wasThere;
    }
    if (this.#used === 0) return false;
    let gap = this.#find(id, place);
    if (this.#isEmpty(gap)) return false;
    this.#used--;
    // What stood behind the gap because its own place was taken moves up, so that no search ends too soon.
    for (let slot = this.#next(gap); !this.#isEmpty(slot); slot = this.#next(slot)) {
      const home = this.#home(placeOf(this.#idAt(slot)));
      const staysBehind = gap <= slot ? home <= gap || home > slot : home <= gap && home > slot;
      if (!staysBehind) continue;
      this.words.copyWithin(gap * WORDS, slot * WORDS, (slot + 1) * WORDS);
      gap = slot;
    }
    this.words.fill(0, gap * WORDS, (gap + 1) * WORDS);
    return true;
  }

  /** The slot of an id, or the empty one where it would be. There always is an empty one. */
  #find(id: Uint32Array, place: number): number {
    const { words } = this;
    const first = id[0];
    let slot = this.#home(place);
    for (;;) {
      const word = words[slot * WORDS];
      // Most slots are told apart by their first word.
      if (word === first && this.#isAt(id, slot)) return slot;
      if (word === 0 && this.#isEmpty(slot)) return slot;
      slot = this.#next(slot);
    }
  }

  #isAt(id: Uint32Array, slot: number): boolean {
    const at = slot * WORDS;
    for (let i = 0; i < WORDS; i++) if (this.words[at + i] !== id[i]) return false;
    return true;
  }

  #isEmpty(slot: number): boolean {
    const at = slot * WORDS;
    for (let i = 0; i < WORDS; i++) if (this.words[at + i] !== 0) return false;
    return true;
  }

  #idAt(slot: number): Uint32Array {
    return this.words.subarray(slot * WORDS, (slot + 1) * WORDS);
  }

  #home(place: number): number {
    return Math.floor(((place & 0xffffff) * this.#slots) / 0x1000000);
  }

  #next(slot: number): number {
    return slot + 1 === this.#slots ? 0 : slot + 1;
  }

  #grow(placeOf: Place): void {
    const old = this.words;
    this.#slots = Math.max(FIRST_SLOTS, Math.ceil(this.#slots * GROWTH));
    this.words = new Uint32Array(this.#slots * WORDS);
    for (let at = 0; at < old.length; at += WORDS) {
      const id = old.subarray(at, at + WORDS);
      if (!isZero(id)) this.words.set(id, this.#find(id, placeOf(id)) * WORDS);
    }
  }
}

function isZero(id: Uint32Array): boolean {
  for (let i = 0; i < WORDS; i++) if (id[i] !== 0) return false;
  return true;
}

/** Where an id is read into: a look-up then leaves no garbage. No two ids are in use at once. */
const scratch = new Uint32Array(WORDS);

function wordsOf(revocationId: string): Uint32Array | undefined {
  const bytes = revocationId.length === ID_CHARS ? decodeBase64Url(revocationId) : undefined;
  if (bytes === undefined) return undefined;
  for (let i = 0; i < WORDS; i++) {
    const [a, b, c, d] = [bytes[4 * i], bytes[4 * i + 1], bytes[4 * i + 2], bytes[4 * i + 3]];
    scratch[i] = (a as number) | ((b as number) << 8) | ((c as number) << 16) | ((d as number) << 24);
  }
  return scratch;
}
