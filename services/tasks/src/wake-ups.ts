import { type Bus, LOOK_AT_EVERYTHING } from "@depute/bus";

/** Wakes the watchers of a task; the key is its id. */
export const TASK_TOPIC = "tasks";

/** Wakes the workers of an agent; the key is the agent's id. */
export const ASSIGNMENT_TOPIC = "assignments";

/** Wake-ups of one topic, by key: a wake-up costs what its own listeners cost, however many others wait. */
export class WakeUps {
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #unsubscribe: () => void;

  constructor(bus: Bus, topic: string) {
    this.#unsubscribe = bus.subscribe(topic, (key) => {
      if (key !== LOOK_AT_EVERYTHING) for (const listener of this.#listeners.get(key) ?? []) listener();
      else for (const listeners of this.#listeners.values()) for (const listener of listeners) listener();
    });
  }

  /** Calls `listener` at each wake-up of `key` until the answer is called. */
  on(key: string, listener: () => void): () => void {
    const listeners = this.#listeners.get(key) ?? new Set();
    this.#listeners.set(key, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#listeners.get(key) === listeners) this.#listeners.delete(key);
    };
  }

  close(): void {
    this.#unsubscribe();
    this.#listeners.clear();
  }
}
