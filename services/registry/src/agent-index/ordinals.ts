/** How many numbers a list has room for at first; it grows by half. */
const FIRST_ROOM = 4;

/** Numbers from 0 to 2^32-1, ascending, each once: 4 bytes each, and at most half as much again in reserve. */
export class Ordinals {
  #items = new Uint32Array(FIRST_ROOM);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The list as it is now, not a copy: to be read before the next change. */
  get items(): Uint32Array {
    return this.#items.subarray(0, this.#length);
  }

  add(ordinal: number): void {
    const at = this.#place(ordinal);
    if (at < this.#length && this.#items[at] === ordinal) return;
    if (this.#length === this.#items.length) {
      const larger = new Uint32Array(this.#length + Math.max(FIRST_ROOM, this.#length >>> 1));
      larger.set(this.#items);
      this.#items = larger;
    }
    this.#items.copyWithin(at + 1, at, this.#length);
    this.#items[at] = ordinal;
    this.#length += 1;
  }

  delete(ordinal: number): void {
    const at = this.#place(ordinal);
    if (at === this.#length || this.#items[at] !== ordinal) return;
    this.#items.copyWithin(at, at + 1, this.#length);
    this.#length -= 1;
  }

  #place(ordinal: number): number {
    // What is new is mostly larger than what is there.
    if (this.#length === 0 || (this.#items[this.#length - 1] as number) < ordinal) return this.#length;
    return firstFrom(this.#items, ordinal, 0, this.#length);
  }
}

/** What all of some lists hold, ascending; it costs the shortest list's length, and little of the others'. */
export function intersect(lists: readonly Ordinals[]): Uint32Array {
  const [shortest, ...others] = [...lists].sort((a, b) => a.length - b.length);
  let found = shortest?.items ?? new Uint32Array();
  for (const { items } of others) {
    const both = new Uint32Array(found.length);
    let count = 0;
    let at = 0;
    for (const ordinal of found) {
      at = gallop(items, ordinal, at);
      if (at === items.length) break;
      if (items[at] === ordinal) both[count++] = ordinal;
    }
    found = both.subarray(0, count);
  }
  return found;
}

/** The first place from `from` on that holds no less than `ordinal`, looked for in doubling steps. */
function gallop(items: Uint32Array, ordinal: number, from: number): number {
  let step = 1;
  let low = from;
  while (low + step < items.length && (items[low + step] as number) < ordinal) {
    low += step;
    step *= 2;
  }
  return firstFrom(items, ordinal, low, Math.min(low + step + 1, items.length));
}

function firstFrom(items: Uint32Array, ordinal: number, low: number, high: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((items[middle] as number) < ordinal) low = middle + 1;
    else high = middle;
  }
  return low;
}
