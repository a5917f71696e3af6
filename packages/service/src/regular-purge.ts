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
  /** The lease of the purge. Only the replica that holds the lease purges. Absent for a service without replicas. */
  readonly lease?: WorkLease | undefined;
}

/**
 * Deletes data of objects that ended long ago. A purge runs once a minute, for the first time one minute after
 * the start.
 */
export abstract class RegularPurge {
  readonly #loop: DeadlineLoop;

  /** @param subject the name of the purged rows in log lines */
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
   * Deletes the rows that are due, in short transactions. Must stop before the next transaction once `close` was
   * called.
   */
  abstract purge(): Promise<void>;

  get isClosed(): boolean {
    return this.#loop.isClosed;
  }

  start(): void {
    this.#loop.start(INTERVAL_MS);
  }

  /** Resolves when no purge is active. Tests await this promise, because their clocks stand still. */
  idle(): Promise<void> {
    return this.#loop.idle();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }
}
