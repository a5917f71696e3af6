import { decodeBase64UrlInto } from "@depute/core";
import type { RevocationView } from "./context.ts";
import { type Place, secretPlaces } from "./secret-places.ts";

/** Number of 32-bit words in an id. The set stores all 256 bits of an id, so that no two blocks collide. */
const WORDS = 8;
const SHARDS = 256;
/** Length of 256 bits in base64url, in characters. */
const ID_CHARS = 43;
const FIRST_SLOTS = 4;
/** The load factor at which a table grows. With thousands of ids in the set, each id takes 43 to 60 bytes. */
const LOAD = 0.75;
const GROWTH = 1.4;

/**
 * Revocation ids whose revokers were proven to be rightful (DelegateOS 4.2), in packed tables. From 10,000 ids on,
 * an id takes at most 64 bytes of memory; a text in a Set would take about 200. A verifier looks up every block of a
 * token in this set. An id belongs to one of 256 tables with open addressing. Each table grows separately, so that
 * no addition waits for a copy of all ids. The slot depends on secret numbers, so an attacker who chooses ids cannot
 * make them collide.
 */
export class RevocationSet implements RevocationView {
  readonly #shards: Shard[] = [];
  readonly #place = secretPlaces(WORDS);
  #size = 0;

  /** Returns the number of ids in the set. */
  get size(): number {
    return this.#size;
  }

  /** Returns the size of the tables in bytes. */
  get bytes(): number {
    return this.#shards.reduce((sum, { words }) => sum + words.byteLength, 0);
  }

  /**
   * Whether the set contains the block's revocation id. The caller of `add` has already proven that the revoker is
   * rightful.
   */
  isRevoked(revocationId: string): boolean {
    return this.has(revocationId);
  }

  /** Whether an id is in the set. False for a malformed id. */
  has(revocationId: string): boolean {
    if (this.#size === 0) return false;
    const id = wordsOf(revocationId);
    if (id === undefined) return false;
    const place = this.#place(id);
    return this.#shards[place >>> 24]?.has(id, place) ?? false;
  }

  /**
   * Adds an id. Returns false if the set already contained the id. Throws RangeError for a malformed id: a revocation
   * must not be lost silently.
   */
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
   * Removes an id. Returns false if the set did not contain the id. A revocation is never undone. So call this
   * method only for a block that has expired by more than the maximum clock skew.
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

/**
 * One hash table with open addressing. A slot of zeros is empty, so the id that consists of zeros is stored separately.
 */
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
    // Moves later entries into the gap if their search begins at the gap or before it. Without the move, their search
    // would end at the gap.
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

  /**
   * Returns the slot that contains the id, or the empty slot where the id belongs. At least one slot is always
   * empty.
   */
  #find(id: Uint32Array, place: number): number {
    const { words } = this;
    const first = id[0];
    let slot = this.#home(place);
    for (;;) {
      const word = words[slot * WORDS];
      // A comparison of the first word is usually enough, because most ids differ in the first word.
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

/** The buffer for one id, so that a look-up allocates nothing. Two ids are never in use at once. */
const scratch = new Uint32Array(WORDS);
const scratchBytes = new Uint8Array(scratch.buffer);

/** Returns an id as words in the machine's order of bytes. The words stay within the process, so any order serves. */
function wordsOf(revocationId: string): Uint32Array | undefined {
  if (revocationId.length !== ID_CHARS) return undefined;
  return decodeBase64UrlInto(scratchBytes, revocationId) === undefined ? undefined : scratch;
}
