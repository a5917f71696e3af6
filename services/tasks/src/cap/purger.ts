import type { Clock, Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import { purgeLineage, quietLineages } from "./purge-rows.ts";

/** Lineages that one look forgets, and messages that one transaction does. */
const LINEAGES = 20;
const MESSAGES = 100;

/** How often the purger looks, milliseconds. */
const INTERVAL_MS = 60_000;

export interface MessagePurgerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** How long a lineage is kept after its last message, milliseconds. */
  readonly retentionMs: number;
}

/** Forgets the messages of lineages that ended long ago. */
export class MessagePurger {
  readonly #options: MessagePurgerOptions;
  #cancel: () => void = () => {};
  #working: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: MessagePurgerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.timers.after(INTERVAL_MS, () => {
      this.#working = this.purge()
        .catch((error: unknown) => this.#options.log.error({ err: error }, "messages could not be purged"))
        .then(() => {
          if (!this.#closed) this.start();
        });
    });
  }

  /** Purges what is due, up to what one look forgets. */
  async purge(): Promise<void> {
    const { store, clock, retentionMs } = this.#options;
    const due = await store.read((tx) => quietLineages(tx, clock.now() - retentionMs, LINEAGES));
    for (const rootId of due) {
      for (let more = true; more && !this.#closed; ) {
        more = await store.write((tx) => purgeLineage(tx, rootId, MESSAGES));
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }
}
