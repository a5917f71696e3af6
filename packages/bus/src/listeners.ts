import { type Listener, LOOK_AT_EVERYTHING, type OnError } from "./bus.ts";

/** Who listens to what in this process. */
export class Listeners {
  readonly #byTopic = new Map<string, Set<{ listener: Listener }>>();
  readonly #onError: OnError;

  constructor(onError: OnError) {
    this.#onError = onError;
  }

  get topics(): string[] {
    return [...this.#byTopic.keys()];
  }

  has(topic: string): boolean {
    return this.#byTopic.has(topic);
  }

  /** The same function may be added twice: each subscription is its own. */
  add(topic: string, listener: Listener): () => void {
    const entry = { listener };
    const entries = this.#byTopic.get(topic) ?? new Set();
    this.#byTopic.set(topic, entries.add(entry));
    return () => {
      if (entries.delete(entry) && entries.size === 0) this.#byTopic.delete(topic);
    };
  }

  deliver(topic: string, key: string): void {
    const entries = this.#byTopic.get(topic);
    // A copy, since listeners come and go while others are called; one that went is not called any more.
    for (const entry of [...(entries ?? [])]) {
      if (!entries?.has(entry)) continue;
      try {
        entry.listener(key);
      } catch (error) {
        this.#onError(error, `a listener of topic ${topic} threw`);
      }
    }
  }

  deliverEverything(topics: Iterable<string>): void {
    for (const topic of topics) this.deliver(topic, LOOK_AT_EVERYTHING);
  }

  clear(): void {
    for (const entries of this.#byTopic.values()) entries.clear();
    this.#byTopic.clear();
  }
}
