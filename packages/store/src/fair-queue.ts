/** The queued items of one caller, in order of arrival. */
interface Line<Item> {
  readonly items: Item[];
  /** Number of items at the front of `items` that `shift` has returned but not yet removed from the array. */
  taken: number;
}

/** When `taken` reaches this number, `shift` removes the returned items from the array. */
const SHORTEN_AT = 256;

/**
 * A queue whose callers take turns: each `shift` returns one item of the next caller. The items of one caller keep
 * their order.
 */
export class FairQueue<Item> {
  /** The callers with queued items. The first entry is the caller whose turn is next. */
  readonly #lines = new Map<string, Line<Item>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** @param caller the caller that the item belongs to; empty if no caller made the item */
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
