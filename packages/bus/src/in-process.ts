import type { Bus, Listener, OnError } from "./bus.ts";
import { Listeners } from "./listeners.ts";
import { Pending } from "./pending.ts";

/** Keys of one topic in one turn of the event loop that are told apart. */
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
