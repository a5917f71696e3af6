/** Keeps the first `limit` of what is offered, in order: a search over everything holds no more than it answers with. */
export class FirstOf<T> {
  readonly items: T[] = [];
  readonly #limit: number;
  readonly #compare: (a: T, b: T) => number;

  constructor(limit: number, compare: (a: T, b: T) => number) {
    this.#limit = limit;
    this.#compare = compare;
  }

  /** What is kept last, once there are so many that whatever comes after it would not be kept. */
  get last(): T | undefined {
    return this.items[this.#limit - 1];
  }

  offer(item: T): void {
    const { items, last } = this;
    if (last !== undefined && this.#compare(last, item) <= 0) return;
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#compare(items[middle] as T, item) < 0) low = middle + 1;
      else high = middle;
    }
    items.splice(low, 0, item);
    if (items.length > this.#limit) items.pop();
  }
}
