import type { Clock, Timers } from "@depute/core";
import type { Logger } from "./log.ts";
import type { WorkLease } from "./shared-work.ts";

export interface DeadlineLoopOptions {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The message of the log line for a failed run, such as "time limits could not be applied". */
  readonly failureMessage: string;
  /**
   * Maximum wait between two runs, in milliseconds. A failed run is repeated after this wait, unless a deadline or a
   * wake-up comes earlier.
   */
  readonly maxWaitMs: number;
  /**
   * Does the work that is due. Must return early when the signal aborts.
   *
   * @returns the next deadline in epoch milliseconds; undefined if no work has a deadline
   */
  readonly runDueWork: (signal: AbortSignal) => Promise<number | undefined> | Promise<void>;
  /**
   * The lease of the work. Only the replica that holds the lease does the work. Absent if each process does the work.
   */
  readonly lease?: WorkLease | undefined;
}

/**
 * Does the work of stored deadlines, sleeps until the next deadline, and starts again. Only one run is active at a
 * time. The store has the deadlines, so the loop also does work whose deadline passed while no process ran. A deadline
 * that another process stored is noticed after at most {@link DeadlineLoopOptions.maxWaitMs}.
 */
export class DeadlineLoop {
  readonly #options: DeadlineLoopOptions;
  readonly #closing = new AbortController();
  #cancel: () => void = () => {};
  /** The time of the next run, in epoch milliseconds; infinity if none is scheduled. */
  #wakeMs = Number.POSITIVE_INFINITY;
  /**
   * The earliest deadline passed to `notice` during the current run, in epoch milliseconds. Infinity for none; minus
   * infinity after a wake-up, so that another run follows at once.
   */
  #noticedMs = Number.POSITIVE_INFINITY;
  #isRunning = false;
  #running: Promise<void> | undefined;

  constructor(options: DeadlineLoopOptions) {
    this.#options = options;
    options.lease?.onTaken(() => this.#wakeOwn());
    options.lease?.onWake(() => this.#wakeOwn());
  }

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Starts the loop. The first run is after `afterMs` milliseconds. */
  start(afterMs = 0): void {
    if (afterMs === 0) this.#wakeOwn();
    else this.#sleepUntil(this.#options.clock.now() + afterMs);
  }

  /**
   * Starts a run now, at the replica that holds the lease. If a run is active there, another run follows the active
   * one.
   */
  wake(): void {
    const { lease } = this.#options;
    if (lease?.isHeld === false) lease.wakeHolder();
    else this.#wakeOwn();
  }

  #wakeOwn(): void {
    this.#noticedMs = Number.NEGATIVE_INFINITY;
    this.#startRun();
  }

  /**
   * Registers a new deadline, so that the loop runs at that time.
   *
   * @param atMs epoch milliseconds
   */
  notice(atMs: number): void {
    if (this.#isRunning) this.#noticedMs = Math.min(this.#noticedMs, atMs);
    else if (atMs < this.#wakeMs) this.#sleepUntil(atMs);
  }

  /** Resolves when no run is active. Tests await this promise, because their clocks stand still. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Ends the loop. Resolves when the active run has ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#cancel();
    await this.idle();
  }

  #startRun(): void {
    if (this.#isRunning || this.isClosed) return;
    this.#cancel();
    this.#noticedMs = Number.POSITIVE_INFINITY;
    this.#isRunning = true;
    this.#running = this.#nextOf().then((nextMs) => {
      this.#isRunning = false;
      this.#running = undefined;
      const atMs = Math.min(nextMs, this.#noticedMs);
      if (atMs === Number.NEGATIVE_INFINITY) this.#startRun();
      else this.#sleepUntil(atMs);
    });
  }

  async #nextOf(): Promise<number> {
    const { runDueWork, log, failureMessage, lease } = this.#options;
    if (lease?.isHeld === false) return Number.POSITIVE_INFINITY;
    try {
      return (await runDueWork(this.#closing.signal)) ?? Number.POSITIVE_INFINITY;
    } catch (err) {
      if (!this.isClosed) log.error({ err }, `${failureMessage}; trying again`);
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
    this.#cancel = timers.after(waitMs, () => this.#startRun());
  }
}
