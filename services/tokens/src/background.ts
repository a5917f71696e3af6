import type { Timers } from "@depute/core";
import type { Logger } from "@depute/service";

const RETRY_MS = 5000;

/**
 * Work that is done in steps behind the calls that make it necessary. What is to be done stands in the store, so that
 * a restart goes on with it; a step that fails is tried again later.
 */
export class BackgroundWork {
  readonly #step: () => Promise<boolean>;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #what: string;
  #running: Promise<void> | undefined;
  #isAskedAgain = false;
  #isRunning = false;
  #cancelRetry: (() => void) | undefined;
  #closed = false;

  /**
   * @param what said in the log when a step fails
   * @param step does some of it; true while there is more
   */
  constructor({ timers, log }: { timers: Timers; log: Logger }, what: string, step: () => Promise<boolean>) {
    this.#step = step;
    this.#timers = timers;
    this.#log = log;
    this.#what = what;
  }

  /** Says that there is something to do. */
  kick(): void {
    if (this.#closed) return;
    this.#isAskedAgain = true;
    if (!this.#isRunning) this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelRetry?.();
    await this.#running;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let isMore = false; (isMore || this.#isAskedAgain) && !this.#closed; ) {
        this.#isAskedAgain = false;
        isMore = await this.#step();
      }
    } catch (err) {
      this.#log.error({ err }, `${this.#what}; trying again`);
      if (!this.#closed) this.#cancelRetry = this.#timers.after(RETRY_MS, () => this.kick());
    }
    // In the same turn in which nothing was found to do: who asks later begins anew.
    this.#isRunning = false;
  }
}
