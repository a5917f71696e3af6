/**
 * One queue for each owner. `take` serves the owners in turn, so an owner with many items delays only its own items.
 */
export class FairQueue<Item> {
  // A Map keeps the order of insertion. `take` moves the served owner to the end.
  readonly #waiting = new Map<string, Item[]>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  push(owner: string, item: Item): void {
    const ownQueue = this.#waiting.get(owner);
    if (ownQueue === undefined) this.#waiting.set(owner, [item]);
    else ownQueue.push(item);
    this.#size += 1;
  }

  /**
   * Removes and returns the oldest item of the first owner that `mayServe` accepts; undefined if no such owner has
   * items.
   */
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

  /** Returns the number of items that wait for an owner's turn. */
  sizeOf(owner: string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  /** Returns the owner with the most waiting items; undefined if no item waits. */
  largestOwner(): { owner: string; size: number } | undefined {
    let shortest: { owner: string; size: number } | undefined;
    for (const [owner, { length }] of this.#waiting) {
      if (length > (shortest?.size ?? 0)) shortest = { owner, size: length };
    }
    return shortest;
  }

  /** Removes and returns an owner's newest item; undefined if no item of the owner waits. */
  dropLast(owner: string): Item | undefined {
    const ownQueue = this.#waiting.get(owner);
    const item = ownQueue?.pop();
    if (item !== undefined) this.#size -= 1;
    if (ownQueue?.length === 0) this.#waiting.delete(owner);
    return item;
  }

  /** Removes and returns all items for which `fits` returns true. */
  remove(fits: (item: Item) => boolean): Item[] {
    const removed: Item[] = [];
    for (const [owner, own] of this.#waiting) {
      const remaining = own.filter((item) => !fits(item) || removed.push(item) === 0);
      if (remaining.length === 0) this.#waiting.delete(owner);
      else this.#waiting.set(owner, remaining);
    }
    this.#size -= removed.length;
    return removed;
  }
}
