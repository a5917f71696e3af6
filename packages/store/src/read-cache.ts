import type { WriteTx } from "./store.ts";

/**
 * Remembers what was read of a store, as long as nobody writes it: what is asked for again and again costs no statement.
 * It never answers with less than what was durable when it was asked. That takes one owner of the tables, who tells it
 * of each write.
 */
export class ReadCache<T> {
  readonly #max: number;
  readonly #held = new Map<string, T>();
  /** Writes of a key that have been made and are not durable yet, or undone. */
  readonly #pending = new Map<string, number>();
  /** Counts what may make a read that is under way older than it looks. */
  #era = 0;

  /** @param max values held; the oldest makes way */
  constructor(max: number) {
    this.#max = max;
  }

  /** What is remembered under a key. */
  get(key: string): T | undefined {
    return this.#held.get(key);
  }

  /**
   * To be called before a key is read.
   *
   * @returns remembers what was read, unless it was written meanwhile
   */
  reading(key: string): (value: T) => void {
    const era = this.#era;
    return (value) => {
      if (era === this.#era && !this.#pending.has(key)) this.#hold(key, value);
    };
  }

  /** To be called in a transaction that writes what is read under a key. */
  forget(tx: WriteTx, key: string): void {
    this.#drop(key);
    const settle = () => this.#settle(key);
    tx.afterRun(() => {
      this.#drop(key);
      this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1);
    }, settle);
    tx.afterCommit(settle);
  }

  #drop(key: string): void {
    this.#era++;
    this.#held.delete(key);
  }

  #settle(key: string): void {
    this.#drop(key);
    const left = (this.#pending.get(key) ?? 1) - 1;
    if (left > 0) this.#pending.set(key, left);
    else this.#pending.delete(key);
  }

  #hold(key: string, value: T): void {
    this.#held.set(key, value);
    if (this.#held.size <= this.#max) return;
    for (const oldest of this.#held.keys()) {
      this.#held.delete(oldest);
      return;
    }
  }
}
