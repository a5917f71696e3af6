import type { Timers } from "@depute/core";
import type { Logger, WorkLease } from "@depute/service";

const RETRY_MS = 5000;
/** Milliseconds between two checks for work that another replica did not finish. */
const TAKEOVER_MS = 2000;

/**
 * Runs background work in steps. The store holds the unfinished work, so a restarted process continues it. After a
 * failed step, the class repeats the step later.
 */
export class BackgroundWork {
  readonly #step: () => Promise<boolean>;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #purpose: string;
  #running: Promise<void> | undefined;
  #isAskedAgain = false;
  #isRunning = false;
  #cancelRetry: (() => void) | undefined;
  #cancelTakeover: (() => void) | undefined;
  #closed = false;

  /**
   * Creates the background work; `wake` starts it.
   *
   * @param purpose the text that the log message of a failed step begins with
   * @param step does one portion of the work; returns true if more remains
   */
  constructor(
    { timers, log }: { timers: Timers; log: Logger },
    purpose: string,
    step: () => Promise<boolean>,
  ) {
    this.#step = step;
    this.#timers = timers;
    this.#log = log;
    this.#purpose = purpose;
  }

  /** Runs steps until no work remains. During a run, requests one more step. */
  wake(): void {
    if (this.#closed) return;
    this.#isAskedAgain = true;
    if (!this.#isRunning) this.#running = this.#run();
  }

  /**
   * Runs the work whenever this process takes the lease or gets a wake-up of the lease. While this process holds the
   * lease, also runs the work every TAKEOVER_MS.
   */
  takeOver(lease: WorkLease): void {
    lease.onTaken(() => this.wake());
    lease.onWake(() => this.wake());
    const look = () => {
      if (lease.isHeld) this.wake();
      if (!this.#closed) this.#cancelTakeover = this.#timers.after(TAKEOVER_MS, look);
    };
    look();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry?.();
    this.#cancelTakeover?.();
    await this.#running;
  }

  /** Runs steps until no work remains. The promise never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let isMore = false; (isMore || this.#isAskedAgain) && !this.#closed; ) {
        this.#isAskedAgain = false;
        isMore = await this.#step();
      }
    } catch (err) {
      this.#log.error({ err }, `${this.#purpose}; trying again`);
      if (!this.#closed) this.#cancelRetry = this.#timers.after(RETRY_MS, () => this.wake());
    }
    // No `await` separates the last check of the loop from this line. So each `wake` either continues the loop or
    // starts a new run.
    this.#isRunning = false;
  }
}
