/** A cache that evicts the least recently used entries. The sum of the entries' weights is at most `maxWeight`. */
export class WeightedLru<Value> {
  readonly #entries = new Map<string, { value: Value; weight: number }>();
  readonly #maxWeight: number;
  #weight = 0;

  constructor(maxWeight: number) {
    this.#maxWeight = maxWeight;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    // A Map keeps the order of insertion. The deletion and the new insertion make this entry the most recently used.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    return entry.value;
  }

  delete(key: string): void {
    this.#remove(key);
  }

  /** Stores a value. Does nothing if the value's weight alone exceeds `maxWeight`. */
  set(key: string, value: Value, weight: number): void {
    this.#remove(key);
    if (weight > this.#maxWeight) return;
    this.#entries.set(key, { value, weight });
    this.#weight += weight;
    for (const oldest of this.#entries.keys()) {
      if (this.#weight <= this.#maxWeight) break;
      this.#remove(oldest);
    }
  }

  #remove(key: string): void {
    this.#weight -= this.#entries.get(key)?.weight ?? 0;
    this.#entries.delete(key);
  }
}
