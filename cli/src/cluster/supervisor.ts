import type { Logger } from "@depute/service";
import type { Child } from "../processes.ts";

/**
 * After a process has ended, the supervisor waits this many milliseconds before it starts the process again. Each
 * further wait is twice as long, up to LONGEST_BACKOFF_MS.
 */
const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 5_000;
/** Maximum number of attempts to start the process for the first time. */
const FIRST_TRIES = 3;
/** If a process has run for this many milliseconds before it ends, the next wait is FIRST_BACKOFF_MS again. */
const STABLE_MS = 10_000;

export interface SupervisorOptions {
  readonly name: string;
  /** Starts the process, and resolves when it is ready. */
  readonly start: () => Promise<Child>;
  /** Milliseconds for which the supervisor waits for the end of a process before it kills the process. */
  readonly graceMs: number;
  readonly log: Logger;
  /** Called after each start and each end. */
  readonly onChange?: () => void;
}

/** Supervises one process: starts the process again whenever it ends, after a wait that grows with each failure. */
export class Supervisor {
  readonly name: string;
  readonly #options: SupervisorOptions;
  #child: Child | undefined;
  #backoffMs = FIRST_BACKOFF_MS;
  #starts = 0;
  /** If the supervisor is waiting before the next start, ends this wait. */
  #wake = () => {};
  #isStopping = false;
  #isReplacing = false;
  #starting: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: SupervisorOptions) {
    this.name = options.name;
    this.#options = options;
  }

  /** The process id; undefined while the process does not run. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Number of times that the process was started again. */
  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /**
   * Starts the process, with up to FIRST_TRIES attempts.
   *
   * @throws the error of the last attempt
   */
  async start(): Promise<void> {
    this.#starting = this.#tryStarting();
    await this.#starting;
    this.#running = this.#keepRunning();
  }

  /**
   * Repeats a failed first start. When many processes start at the same time, the database can be too slow for the
   * first attempt.
   */
  async #tryStarting(): Promise<void> {
    for (let remaining = FIRST_TRIES - 1; ; remaining--) {
      try {
        return await this.#startOnce();
      } catch (error) {
        if (remaining === 0 || this.#isStopping) throw error;
        await this.#wait(this.#backoffMs);
      }
    }
  }

  /** Stops the process and starts it again. Resolves when the new process is ready. */
  async replace(): Promise<void> {
    if (this.#isStopping) return;
    this.#isReplacing = true;
    const before = this.#starts;
    await this.#child?.stop(this.#options.graceMs);
    while (this.#starts === before && !this.#isStopping) await pause(FIRST_BACKOFF_MS / 2);
  }

  /** Stops the process, and does not start it again. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#wake();
    await this.#starting?.catch(() => {});
    await this.#child?.stop(this.#options.graceMs);
    await this.#running;
  }

  async #startOnce(): Promise<void> {
    const child = await this.#options.start();
    this.#child = child;
    this.#starts++;
    this.#options.onChange?.();
    if (this.#isStopping) await child.stop(this.#options.graceMs);
  }

  /** Starts the process again whenever it ends, until the supervisor stops. The promise never rejects. */
  async #keepRunning(): Promise<void> {
    const { name, log, onChange } = this.#options;
    while (!this.#isStopping) {
      const beginMs = performance.now();
      const how = await this.#child?.exited;
      this.#child = undefined;
      onChange?.();
      if (this.#isStopping) return;
      if (performance.now() - beginMs >= STABLE_MS) this.#backoffMs = FIRST_BACKOFF_MS;
      if (!this.#isReplacing) log.error({ process: name, how }, "a process ended; it starts again");
      await this.#startAgain();
    }
  }

  /** Tries to start the process until it is ready, or until the supervisor stops. */
  async #startAgain(): Promise<void> {
    const { name, log } = this.#options;
    while (!this.#isStopping) {
      if (!this.#isReplacing) {
        await this.#wait(this.#backoffMs);
        this.#backoffMs = Math.min(this.#backoffMs * 2, LONGEST_BACKOFF_MS);
      }
      if (this.#isStopping) return;
      this.#isReplacing = false;
      try {
        return await this.#startOnce();
      } catch (err) {
        log.error({ process: name, err }, "a process did not start; it starts again");
      }
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms));
}
