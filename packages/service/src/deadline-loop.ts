import type { Clock, Timers } from "@depute/core";
import type { Logger } from "./log.ts";

export interface DeadlineLoopOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The log's words for a look that failed: "time limits could not be applied". */
  readonly what: string;
  /** The longest time between two looks, and the wait after one that failed; milliseconds. */
  readonly maxWaitMs: number;
  /**
   * Does what is due. A look that the signal aborts returns early.
   *
   * @returns the next deadline, epoch milliseconds; nothing when there is none
   */
  readonly look: (signal: AbortSignal) => Promise<number | undefined> | Promise<void>;
}

/**
 * Looks at deadlines: does what is due, sleeps until the next deadline, and looks again, one look at a time. Deadlines live in
 * the store, so a restart catches up with those that passed, and a deadline of another process is seen within
 * {@link DeadlineLoopOptions.maxWaitMs}.
 */
export class DeadlineLoop {
  readonly #options: DeadlineLoopOptions;
  readonly #closing = new AbortController();
  #cancel: () => void = () => {};
  /** When the next look is, epoch milliseconds. */
  #wakeMs = Number.POSITIVE_INFINITY;
  /** The earliest deadline that came during the present look, epoch milliseconds. */
  #noticedMs = Number.POSITIVE_INFINITY;
  #isLooking = false;
  #looking: Promise<void> | undefined;

  constructor(options: DeadlineLoopOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Begins with a look now, or after some milliseconds. */
  start(afterMs = 0): void {
    if (afterMs === 0) this.wake();
    else this.#sleepUntil(this.#options.clock.now() + afterMs);
  }

  /** Looks now; during a look, once more after it. */
  wake(): void {
    this.#noticedMs = Number.NEGATIVE_INFINITY;
    this.#look();
  }

  /** A deadline was set: epoch milliseconds. */
  notice(atMs: number): void {
    if (this.#isLooking) this.#noticedMs = Math.min(this.#noticedMs, atMs);
    else if (atMs < this.#wakeMs) this.#sleepUntil(atMs);
  }

  /** Resolves when no look is under way; for tests, whose clocks stand still. */
  async idle(): Promise<void> {
    while (this.#looking !== undefined) await this.#looking;
  }

  /** Ends the loop; a look that is under way is waited for. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancel();
    await this.idle();
  }

  #look(): void {
    if (this.#isLooking || this.isClosed) return;
    this.#cancel();
    this.#noticedMs = Number.POSITIVE_INFINITY;
    this.#isLooking = true;
    this.#looking = this.#nextOf().then((nextMs) => {
      this.#isLooking = false;
      this.#looking = undefined;
      const atMs = Math.min(nextMs, this.#noticedMs);
      if (atMs === Number.NEGATIVE_INFINITY) this.#look();
      else this.#sleepUntil(atMs);
    });
  }

  async #nextOf(): Promise<number> {
    const { look, log, what } = this.#options;
    try {
      return (await look(this.#closing.signal)) ?? Number.POSITIVE_INFINITY;
    } catch (err) {
      if (!this.isClosed) log.error({ err }, `${what}; trying again`);
      return Number.POSITIVE_INFINITY;
    }
  }

  #sleepUntil(atMs: number): void {
    this.#cancel();
    if (this.isClosed) return;
    const { clock, timers, maxWaitMs } = this.#options;
    const nowMs = clock.now();
    const waitMs = Math.min(Math.max(0, atMs - nowMs), maxWaitMs);
    this.#wakeMs = nowMs + waitMs;
    this.#cancel = timers.after(waitMs, () => this.#look());
  }
}
