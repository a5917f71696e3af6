import type { Timers } from "@depute/core";
import type { Logger } from "./log.ts";

/** How often a purge looks, milliseconds. */
const INTERVAL_MS = 60_000;

export interface RegularPurgeOptions {
  readonly timers: Timers;
  readonly log: Logger;
}

/** What forgets things that ended long ago: looks once a minute, one look at a time, and goes on after one that failed. */
export abstract class RegularPurge {
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #what: string;
  #cancel: () => void = () => {};
  #working: Promise<void> = Promise.resolve();
  #closed = false;

  /** @param what it purges, for the log */
  constructor({ timers, log }: RegularPurgeOptions, what: string) {
    this.#timers = timers;
    this.#log = log;
    this.#what = what;
  }

  /** Purges what is due, in short transactions; stops between two of them once it is closed. */
  abstract purge(): Promise<void>;

  get isClosed(): boolean {
    return this.#closed;
  }

  start(): void {
    this.#cancel = this.#timers.after(INTERVAL_MS, () => {
      this.#working = this.purge()
        .catch((error: unknown) => this.#log.error({ err: error }, `${this.#what} could not be purged`))
        .then(() => {
          if (!this.#closed) this.start();
        });
    });
  }

  /** Resolves when nothing is being done; for tests, whose clocks stand still. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }
}
