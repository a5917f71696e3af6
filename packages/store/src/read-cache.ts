import type { WriteTx } from "./store.ts";

/**
 * Caches values that a program has read from a store, until their key is written. Repeated reads then cost no
 * statement. The result of `get` is never older than the data that was durable at the call of `get`. This holds only if
 * one process owns the tables and reports each write by `forget`.
 */
export class ReadCache<T> {
  readonly #max: number;
  readonly #entries = new Map<string, T>();
  /** For each key, the number of its writes that are neither durable nor rolled back yet. */
  readonly #pending = new Map<string, number>();
  /** Number of calls of `#drop` and `clear` so far. If the number grew during a read, the read value may be stale. */
  #generation = 0;

  /** @param max maximum number of values; beyond it, a new value removes the value that was cached first */
  constructor(max: number) {
    this.#max = max;
  }

  /** Returns the cached value of a key; undefined if there is none. */
  get(key: string): T | undefined {
    return this.#entries.get(key);
  }

  /**
   * Notes that a read of the key begins. Call this method before the read of the store.
   *
   * @returns a function that caches the value that was read. The returned function has no effect if `forget` or `clear`
   * was called in the meantime, or if a write of the key is not durable yet
   */
  reading(key: string): (value: T) => void {
    const generation = this.#generation;
    return (value) => {
      if (generation === this.#generation && !this.#pending.has(key)) this.#insert(key, value);
    };
  }

  /** Removes the value of a key. Call this method in the transaction that writes the key's record. */
  forget(tx: WriteTx, key: string): void {
    this.#drop(key);
    const settle = () => this.#settle(key);
    tx.afterRun(() => {
      this.#drop(key);
      this.#pending.set(key, (this.#pending.get(key) ?? 0) + 1);
    }, settle);
    tx.afterCommit(settle);
  }

  /**
   * Removes all values. In a shared schema, call this method at each commit of another process; see
   * `Sharing.onOthersCommit`.
   */
  clear(): void {
    this.#generation++;
    this.#entries.clear();
  }

  #drop(key: string): void {
    this.#generation++;
    this.#entries.delete(key);
  }

  #settle(key: string): void {
    this.#drop(key);
    const remainingReads = (this.#pending.get(key) ?? 1) - 1;
    if (remainingReads > 0) this.#pending.set(key, remainingReads);
    else this.#pending.delete(key);
  }

  #insert(key: string, value: T): void {
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#max) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }
}
