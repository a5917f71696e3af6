import type { OrderedList } from "./ordered-list.ts";
import { PlaceOrder } from "./place-order.ts";
import { compareText } from "./text-order.ts";

/** A capability's place in the order of the lists: the word of its id, then its agent's id. */
export interface Place {
  readonly word: string;
  readonly agentId: string;
}

export function comparePlaces(a: Place, b: Place): number {
  return compareText(a.word, b.word) || compareText(a.agentId, b.agentId);
}

/**
 * For each word, the capabilities that have it, in the order of the lists: where many have all of some words, the first of
 * them are found without a look at the others.
 */
export class CapabilityLists {
  readonly #places: Place[] = [];
  readonly #free: number[] = [];
  readonly #order = new PlaceOrder((a, b) => comparePlaces(this.#place(a), this.#place(b)));
  readonly #lists: (OrderedList | undefined)[] = [];
  /** While many come, those that came, to be put in order together. */
  #waiting: { readonly ordinal: number; readonly words: readonly number[] }[] | undefined;

  /** Has what is added until `endLoading` wait for it; only while there is nothing. */
  beginLoading(): void {
    this.#waiting = [];
  }

  endLoading(): void {
    const waiting = inOrder(this.#waiting ?? [], ({ ordinal }) => this.#place(ordinal));
    this.#waiting = undefined;
    this.#order.addAll(waiting.map(({ ordinal }) => ordinal));
    for (const { ordinal, words } of waiting) this.#enter(ordinal, words);
  }

  /** @returns the capability's number, until it is deleted */
  add(place: Place, words: readonly number[]): number {
    const ordinal = this.#free.pop() ?? this.#places.length;
    this.#places[ordinal] = place;
    if (this.#waiting !== undefined) {
      this.#waiting.push({ ordinal, words });
      return ordinal;
    }
    this.#order.add(ordinal);
    this.#enter(ordinal, words);
    return ordinal;
  }

  /** @param words those that it was added with */
  delete(ordinal: number, words: readonly number[]): void {
    for (const word of words) {
      const list = this.#lists[word];
      list?.delete(ordinal);
      if (list?.isEmpty) this.#lists[word] = undefined;
    }
    this.#order.delete(ordinal);
    this.#free.push(ordinal);
  }

  /**
   * The first capabilities behind `after` that have all of some words.
   *
   * @param maxSteps places in the lists that it looks at
   * @returns undefined when it would have to look at more
   */
  search(words: readonly number[], after: Place, limit: number, maxSteps: number): Place[] | undefined {
    const lists = words.map((word) => this.#lists[word]).filter((list) => list !== undefined);
    if (lists.length < words.length) return [];
    const cursors = lists.map((list) => list.cursor());
    const rank = (item: number) => this.#order.rank(item);
    const found: Place[] = [];
    const [first] = cursors;
    let item = first?.((other) => comparePlaces(this.#place(other), after) <= 0);
    let agreeing = 1;
    let turn = 0;
    for (let steps = 0; item !== undefined && found.length < limit; steps++) {
      if (steps === maxSteps) return undefined;
      const at = rank(item);
      if (agreeing === cursors.length) {
        found.push(this.#place(item));
        item = cursors[turn]?.((other) => rank(other) <= at);
        agreeing = 1;
        continue;
      }
      turn = (turn + 1) % cursors.length;
      const next = cursors[turn]?.((other) => rank(other) < at);
      agreeing = next === item ? agreeing + 1 : 1;
      item = next;
    }
    return found;
  }

  #enter(ordinal: number, words: readonly number[]): void {
    for (const word of words) {
      let list = this.#lists[word];
      if (list === undefined) {
        list = this.#order.list();
        this.#lists[word] = list;
      }
      list.add(ordinal);
    }
  }

  #place(ordinal: number): Place {
    return this.#places[ordinal] as Place;
  }
}

/** Sorts what mostly comes in the order of agents: many capabilities have the same ids, which are then compared once. */
function inOrder<T>(items: readonly T[], place: (item: T) => Place): T[] {
  const byWord = new Map<string, T[]>();
  for (const item of items) {
    const { word } = place(item);
    const group = byWord.get(word);
    if (group === undefined) byWord.set(word, [item]);
    else group.push(item);
  }
  const words = [...byWord.keys()].sort(compareText);
  const compare = (a: T, b: T) => compareText(place(a).agentId, place(b).agentId);
  return words.flatMap((word) => (byWord.get(word) ?? []).sort(compare));
}
