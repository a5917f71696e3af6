import type { Timers } from "@depute/core";
import type { Logger } from "./log.ts";
import { pause } from "./stream-follower.ts";

/** Maximum number of rows in one read. */
const BATCH = 50;

/** Milliseconds until a failed delivery is retried. The wait doubles each time, up to LONGEST_WAIT_MS. */
const FIRST_WAIT_MS = 250;
/** The maximum wait, which is also the longest time between two reads of the rows. */
const LONGEST_WAIT_MS = 30_000;

export interface OutboxOptions<Row> {
  readonly timers: Timers;
  readonly log: Logger;
  /** The log message of a failed delivery. */
  readonly failureMessage: string;
  /** Reads up to `limit` undelivered rows, oldest first. */
  readonly first: (limit: number) => Promise<Row[]>;
  /** Delivers one row. A thrown error means that a retry may succeed. */
  readonly tell: (row: Row, signal: AbortSignal) => Promise<void>;
  /** Deletes a delivered row. */
  readonly drop: (row: Row) => Promise<void>;
}

/**
 * Delivers rows of a store to another service, in order and each at least once. The transaction that makes a
 * change also writes the row that reports the change. A delivered row is deleted. While the other service is
 * unavailable, the rows wait.
 */
export class Outbox<Row> {
  readonly #options: OutboxOptions<Row>;
  readonly #closing = new AbortController();
  #wake: () => void = () => {};
  /** Whether a wake-up came during the current read, so that another read must follow. */
  #woken = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: OutboxOptions<Row>) {
    this.#options = options;
  }

  start(): void {
    // The services of one process start in sequence; the first delivery waits until all of them listen.
    this.#done = pause(0, this.#options.timers, this.#closing.signal).then(() => this.#run());
  }

  /** Notes that there is a new row, and wakes the delivery. */
  wake(): void {
    this.#woken = true;
    this.#wake();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { timers } = this.#options;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; ) {
      this.#woken = false;
      try {
        const isMore = await this.#tellBatch(() => {
          waitMs = FIRST_WAIT_MS;
        });
        if (!isMore && !this.#woken) {
          await pause(LONGEST_WAIT_MS, timers, signal, (wake) => {
            this.#wake = wake;
          });
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#options.log.warn({ err: error, waitMs }, `${this.#options.failureMessage}; trying again`);
        // A wake-up during the pause does not make the other service available sooner.
        await pause(waitMs, timers, signal);
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      }
    }
  }

  /**
   * Delivers the next rows.
   *
   * @returns whether there may be more
   */
  async #tellBatch(onTold: () => void): Promise<boolean> {
    const { first, tell, drop } = this.#options;
    const { signal } = this.#closing;
    const rows = await first(BATCH);
    for (const row of rows) {
      if (signal.aborted) return false;
      await tell(row, signal);
      await drop(row);
      onTold();
    }
    return rows.length === BATCH;
  }
}
