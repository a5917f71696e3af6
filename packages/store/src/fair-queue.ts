/** Items of one caller, in order of arrival. */
interface Line<Item> {
  readonly items: Item[];
  /** Number of items at the front that were taken. */
  taken: number;
}

/** Number of taken items after which the taken items are removed from a line's array. */
const SHORTEN_AT = 256;

/**
 * A queue whose callers take turns: each turn gives one item of one caller. The items of one caller keep their order.
 */
export class FairQueue<Item> {
  /** The callers with items, the next one first. */
  readonly #lines = new Map<string, Line<Item>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param caller empty for an item without caller */
  push(item: Item, caller: string): void {
    const line = this.#lines.get(caller);
    if (line === undefined) this.#lines.set(caller, { items: [item], taken: 0 });
    else line.items.push(item);
    this.#length += 1;
  }

  /** Removes and returns the next item; undefined if there is none. */
  shift(): Item | undefined {
    const [first] = this.#lines;
    if (first === undefined) return undefined;
    const [caller, line] = first;
    const item = line.items[line.taken] as Item;
    line.taken += 1;
    this.#length -= 1;
    if (this.#lines.size === 1 && line.taken < line.items.length) {
      shorten(line);
      return item;
    }
    this.#lines.delete(caller);
    if (line.taken < line.items.length) {
      shorten(line);
      this.#lines.set(caller, line);
    }
    return item;
  }
}

function shorten<Item>(line: Line<Item>): void {
  if (line.taken < SHORTEN_AT) return;
  line.items.splice(0, line.taken);
  line.taken = 0;
}
