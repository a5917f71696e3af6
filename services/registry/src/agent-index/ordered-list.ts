/** Items of one chunk before it is halved: an insertion moves no more than these. */
const MAX_CHUNK = 512;

/** Distinct numbers in an order of their own, which may be changed as long as it stays the same for these. */
export class OrderedList {
  readonly #chunks: number[][] = [];
  readonly #compare: (a: number, b: number) => number;

  constructor(compare: (a: number, b: number) => number) {
    this.#compare = compare;
  }

  get isEmpty(): boolean {
    return this.#chunks.length === 0;
  }

  *[Symbol.iterator](): Iterator<number> {
    for (const chunk of this.#chunks) yield* chunk;
  }

  /** @returns the items before and after it, where there are any */
  add(item: number): { before: number | undefined; after: number | undefined } {
    const isBefore = (other: number) => this.#compare(other, item) < 0;
    const end = this.#chunks.at(-1);
    const last = end?.at(-1);
    if (end === undefined || last === undefined || isBefore(last)) {
      // What comes in order fills its chunks.
      if (end === undefined || end.length === MAX_CHUNK) this.#chunks.push([item]);
      else end.push(item);
      return { before: last, after: undefined };
    }
    const n = this.#chunkFrom(0, isBefore);
    const chunk = this.#chunks[n] as number[];
    const at = firstNot(isBefore, chunk, 0);
    const before = at > 0 ? chunk[at - 1] : this.#chunks[n - 1]?.at(-1);
    const after = chunk[at];
    chunk.splice(at, 0, item);
    if (chunk.length > MAX_CHUNK) this.#chunks.splice(n + 1, 0, chunk.splice(MAX_CHUNK / 2));
    return { before, after };
  }

  delete(item: number): void {
    const isBefore = (other: number) => this.#compare(other, item) < 0;
    const n = this.#chunkFrom(0, isBefore);
    const chunk = this.#chunks[n];
    if (chunk === undefined) return;
    const at = firstNot(isBefore, chunk, 0);
    if (chunk[at] !== item) return;
    chunk.splice(at, 1);
    if (chunk.length === 0) this.#chunks.splice(n, 1);
  }

  /**
   * Walks forward through the list: each call gives the first item from the last one on of which the question says no. It has
   * to say yes of every item before one of which it does.
   */
  cursor(): (isBefore: (item: number) => boolean) => number | undefined {
    let [n, at] = [0, 0];
    return (isBefore) => {
      const found = this.#chunkFrom(n, isBefore);
      const chunk = this.#chunks[found];
      if (chunk === undefined) return undefined;
      at = firstNot(isBefore, chunk, found === n ? at : 0);
      n = found;
      return chunk[at];
    };
  }

  /** The first chunk from `from` on whose last item is not before. */
  #chunkFrom(from: number, isBefore: (item: number) => boolean): number {
    const last = (n: number) => (this.#chunks[n] as number[]).at(-1) as number;
    // Mostly it is this one or the last one.
    if (from < this.#chunks.length && !isBefore(last(from))) return from;
    let [low, high] = [from, this.#chunks.length];
    if (high > low && isBefore(last(high - 1))) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(last(middle))) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** The first place from `from` on whose item is not before, looked for in doubling steps. */
function firstNot(isBefore: (item: number) => boolean, items: readonly number[], from: number): number {
  let [low, step] = [from, 1];
  while (low + step <= items.length && isBefore(items[low + step - 1] as number)) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step - 1, items.length);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (isBefore(items[middle] as number)) low = middle + 1;
    else high = middle;
  }
  return low;
}
