/** What waits, by who asked for it: everybody is served in turn, whoever asked for more has more to wait. */
export class FairQueue<Item> {
  // A Map keeps the order of insertion: who was served goes to its end.
  readonly #waiting = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(owner: string, item: Item): void {
    const own = this.#waiting.get(owner);
    if (own === undefined) this.#waiting.set(owner, [item]);
    else own.push(item);
    this.#size += 1;
  }

  /** The next in turn of somebody who may be served now. */
  take(mayServe: (owner: string) => boolean): Item | undefined {
    for (const [owner, own] of this.#waiting) {
      if (!mayServe(owner)) continue;
      const item = own.shift();
      this.#size -= 1;
      this.#waiting.delete(owner);
      if (own.length > 0) this.#waiting.set(owner, own);
      return item;
    }
    return undefined;
  }

  /** How many of an owner wait. */
  sizeOf(owner: string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  /** Who has the most waiting. */
  greediest(): { owner: string; size: number } | undefined {
    let found: { owner: string; size: number } | undefined;
    for (const [owner, { length }] of this.#waiting) {
      if (length > (found?.size ?? 0)) found = { owner, size: length };
    }
    return found;
  }

  /** Takes out the one that an owner asked for last. */
  dropLast(owner: string): Item | undefined {
    const own = this.#waiting.get(owner);
    const item = own?.pop();
    if (item !== undefined) this.#size -= 1;
    if (own?.length === 0) this.#waiting.delete(owner);
    return item;
  }

  /** Takes out all that fit. */
  remove(fits: (item: Item) => boolean): Item[] {
    const removed: Item[] = [];
    for (const [owner, own] of this.#waiting) {
      const kept = own.filter((item) => !fits(item) || removed.push(item) === 0);
      if (kept.length === 0) this.#waiting.delete(owner);
      else this.#waiting.set(owner, kept);
    }
    this.#size -= removed.length;
    return removed;
  }
}
