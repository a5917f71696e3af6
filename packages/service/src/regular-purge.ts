import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop } from "./deadline-loop.ts";
import type { Logger } from "./log.ts";
import type { WorkLease } from "./shared-work.ts";

/** Milliseconds between two purges. */
const INTERVAL_MS = 60_000;

export interface RegularPurgeOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The lease of the purge, so that one replica at a time purges. Absent for a service without replicas. */
  readonly lease?: WorkLease | undefined;
}

/**
 * Deletes data of objects that ended long ago. A purge runs once a minute, for the first time one minute after
 * the start.
 */
export abstract class RegularPurge {
  readonly #loop: DeadlineLoop;

  /** @param subject names the purged rows in the log */
  constructor({ clock, timers, log, lease }: RegularPurgeOptions, subject: string) {
    this.#loop = new DeadlineLoop({
      clock,
      timers,
      log,
      failureMessage: `${subject} could not be purged`,
      maxWaitMs: INTERVAL_MS,
      runDueWork: () => this.purge(),
      lease,
    });
  }

  /**
   * Deletes the rows that are due, in short transactions. After `close`, the purge stops before the next
   * transaction.
   */
  abstract purge(): Promise<void>;

  get isClosed(): boolean {
    return this.#loop.isClosed;
  }

  start(): void {
    this.#loop.start(INTERVAL_MS);
  }

  /** Resolves when no purge is active. Tests wait for this promise, because their clocks stand still. */
  idle(): Promise<void> {
    return this.#loop.idle();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }
}
