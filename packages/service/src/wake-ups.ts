import { type Bus, LOOK_AT_EVERYTHING } from "@depute/bus";

interface Waiting {
  readonly listeners: Set<() => void>;
  version: number;
}

/** Wake-ups of one topic, by key: a wake-up costs what its own listeners cost, however many others wait. */
export class WakeUps {
  readonly #waiting = new Map<string, Waiting>();
  readonly #unsubscribe: () => void;

  constructor(bus: Bus, topic: string) {
    this.#unsubscribe = bus.subscribe(topic, (key) => {
      if (key !== LOOK_AT_EVERYTHING) wake(this.#waiting.get(key));
      else for (const waiting of this.#waiting.values()) wake(waiting);
    });
  }

  /** Counts the wake-ups of a key while somebody listens, from 1; 0 while nobody does. */
  version(key: string): number {
    return this.#waiting.get(key)?.version ?? 0;
  }

  /** Calls `listener` at each wake-up of `key` until the answer is called. */
  on(key: string, listener: () => void): () => void {
    const waiting = this.#waiting.get(key) ?? { listeners: new Set(), version: 1 };
    waiting.listeners.add(listener);
    this.#waiting.set(key, waiting);
    return () => {
      waiting.listeners.delete(listener);
      if (waiting.listeners.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    };
  }

  close(): void {
    this.#unsubscribe();
    this.#waiting.clear();
  }
}

function wake(waiting: Waiting | undefined): void {
  if (waiting === undefined) return;
  // Before the listeners, so that what they read is read anew.
  waiting.version++;
  for (const listener of waiting.listeners) listener();
}
