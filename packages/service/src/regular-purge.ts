import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop } from "./deadline-loop.ts";
import type { Logger } from "./log.ts";

/** How often a purge looks, milliseconds. */
const INTERVAL_MS = 60_000;

export interface RegularPurgeOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/** Forgets what ended long ago: looks once a minute, the first time a minute after the start. */
export abstract class RegularPurge {
  readonly #loop: DeadlineLoop;

  /** @param what it purges, for the log */
  constructor({ clock, timers, log }: RegularPurgeOptions, what: string) {
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      what: `${what} could not be purged`,
      maxWaitMs: INTERVAL_MS,
      look: () => this.purge(),
    });
  }

  /** Purges what is due, in short transactions; stops between two of them once it is closed. */
  abstract purge(): Promise<void>;

  get isClosed(): boolean {
    return this.#loop.isClosed;
  }

  start(): void {
    this.#loop.start(INTERVAL_MS);
  }

  /** Resolves when nothing is being done; for tests, whose clocks stand still. */
  idle(): Promise<void> {
    return this.#loop.idle();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }
}
