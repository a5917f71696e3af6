import { OrderedList } from "./ordered-list.ts";

/** Ranks are whole numbers below this, as far apart as they can be. */
const RANKS = 2 ** 52;

/**
 * Ordinals in an order that is costly to ask for, with a rank each that tells it at once. A rank may change when others come;
 * the order of two does not.
 */
export class PlaceOrder {
  readonly #all: OrderedList;
  #ranks = new Float64Array(1 << 8);
  #count = 0;

  constructor(compare: (a: number, b: number) => number) {
    this.#all = new OrderedList(compare);
  }

  rank(ordinal: number): number {
    return this.#ranks[ordinal] as number;
  }

  /** A list in this order. */
  list(): OrderedList {
    return new OrderedList((a, b) => this.rank(a) - this.rank(b));
  }

  add(ordinal: number): void {
    this.#makeRoom(ordinal);
    const { before, after } = this.#all.add(ordinal);
    this.#count += 1;
    const low = before === undefined ? 0 : this.rank(before);
    const high = after === undefined ? RANKS : this.rank(after);
    const middle = Math.floor(low + (high - low) / 2);
    if (middle > low && middle < high) this.#ranks[ordinal] = middle;
    else this.#spread();
  }

  /** Adds many in order to an empty one, so that they are as far apart as they can be. */
  addAll(inOrder: readonly number[]): void {
    for (const ordinal of inOrder) {
      this.#makeRoom(ordinal);
      this.#all.add(ordinal);
    }
    this.#count += inOrder.length;
    this.#spread();
  }

  delete(ordinal: number): void {
    this.#all.delete(ordinal);
    this.#count -= 1;
  }

  #spread(): void {
    const step = Math.floor(RANKS / (this.#count + 1));
    let rank = 0;
    for (const ordinal of this.#all) this.#ranks[ordinal] = rank += step;
  }

  #makeRoom(ordinal: number): void {
    if (ordinal < this.#ranks.length) return;
    const larger = new Float64Array(Math.max(ordinal + 1, this.#ranks.length + (this.#ranks.length >>> 1)));
    larger.set(this.#ranks);
    this.#ranks = larger;
  }
}
