import { LOOK_AT_EVERYTHING } from "./bus.ts";

/**
 * Wake-ups that wait to be sent, each once.
 *
 * Bounded without losing one: a topic with more keys than `maxKeys` waits as LOOK_AT_EVERYTHING. Topics are few, being
 * names in the code.
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
    } else if (!keys.has(LOOK_AT_EVERYTHING)) {
      keys.add(key);
      if (key === LOOK_AT_EVERYTHING || keys.size > this.#maxKeys) {
        this.#keysByTopic.set(topic, new Set([LOOK_AT_EVERYTHING]));
      }
    }
  }

  /** Takes all of them out. */
  take(): { topic: string; key: string }[] {
    const taken = [...this.#keysByTopic].flatMap(([topic, keys]) => [...keys].map((key) => ({ topic, key })));
    this.#keysByTopic.clear();
    return taken;
  }
}
