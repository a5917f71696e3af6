import { ALL_KEYS, type Bus, type Listener, type OnError } from "./bus.ts";

/**
 * Maximum number of distinct keys of one topic in one turn of the event loop. With more keys, the topic's wake-ups
 * merge into ALL_KEYS.
 */
const MAX_KEYS = 10_000;

/** The bus of a platform that runs in one process. */
export class InProcessBus implements Bus {
  readonly #listeners: Listeners;
  readonly #pending = new Pending(MAX_KEYS);
  #delivery: NodeJS.Immediate | undefined;
  #closed = false;

  constructor(options: { onError: OnError }) {
    this.#listeners = new Listeners(options.onError);
  }

  publish(topic: string, key: string): void {
    if (this.#closed || !this.#listeners.has(topic)) return;
    this.#pending.add(topic, key);
    this.#delivery ??= setImmediate(() => {
      this.#delivery = undefined;
      for (const wakeUp of this.#pending.take()) this.#listeners.deliver(wakeUp.topic, wakeUp.key);
    });
  }

  subscribe(topic: string, listener: Listener): () => void {
    return this.#closed ? () => {} : this.#listeners.add(topic, listener);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearImmediate(this.#delivery);
    this.#listeners.clear();
  }
}

/** The listeners of this process, by topic. */
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

  /** Adds a listener. A function that is added twice is called twice for each wake-up. */
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
    // The loop uses a copy, because a call may add or remove listeners. A listener that is removed during the loop is
    // not called.
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
    for (const topic of topics) this.deliver(topic, ALL_KEYS);
  }

  clear(): void {
    for (const entries of this.#byTopic.values()) entries.clear();
    this.#byTopic.clear();
  }
}

/**
 * Wake-ups that wait to be sent. Equal wake-ups wait as one. The number of waiting keys per topic is bounded, and no
 * wake-up is lost: if a topic has more than `maxKeys` keys, ALL_KEYS replaces them. The number of topics is small,
 * because topics are constants in the code.
 */
export class Pending {
  readonly #keysByTopic = new Map<string, Set<string>>();
  readonly #maxKeys: number;

  constructor(maxKeys: number) {
    this.#maxKeys = maxKeys;
  }

  get isEmpty(): boolean {
    return this.#keysByTopic.size === 0;
  }

  add(topic: string, key: string): void {
    const keys = this.#keysByTopic.get(topic);
    if (keys === undefined) {
      this.#keysByTopic.set(topic, new Set([key]));
    } else if (!keys.has(ALL_KEYS)) {
      keys.add(key);
      if (key === ALL_KEYS || keys.size > this.#maxKeys) {
        this.#keysByTopic.set(topic, new Set([ALL_KEYS]));
      }
    }
  }

  /** Removes all waiting wake-ups, and returns them. */
  take(): { topic: string; key: string }[] {
    const entries = [...this.#keysByTopic].flatMap(([topic, keys]) =>
      [...keys].map((key) => ({ topic, key })),
    );
    this.#keysByTopic.clear();
    return entries;
  }
}
