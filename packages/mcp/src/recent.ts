import type { Clock } from "@depute/core";

/**
 * A cache of results with a limited lifetime. Errors are not cached. At the maximum size, the oldest entry is dropped.
 */
export class Recent<Value> {
  readonly #max: number;
  readonly #ms: number;
  readonly #clock: Clock;
  readonly #entries = new Map<string, { readonly value: Promise<Value>; readonly until: number }>();

  /** @param options `max` is the maximum number of entries, `ms` the lifetime of an entry in milliseconds */
  constructor({ max, ms, clock }: { max: number; ms: number; clock: Clock }) {
    this.#max = max;
    this.#ms = ms;
    this.#clock = clock;
  }

  get(key: string, ask: () => Promise<Value>): Promise<Value> {
    const known = this.#entries.get(key);
    if (known !== undefined && known.until > this.#clock.now()) return known.value;
    const value = ask();
    this.#entries.delete(key);
    this.#entries.set(key, { value, until: this.#clock.now() + this.#ms });
    value.catch(() => {
      if (this.#entries.get(key)?.value === value) this.#entries.delete(key);
    });
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > this.#max && oldest !== undefined) this.#entries.delete(oldest);
    return value;
  }
}
