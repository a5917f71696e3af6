import type { Timers } from "@depute/core";
import type { Logger } from "./log.ts";
import { pause } from "./stream-follower.ts";

/** Rows that are read at once. */
const BATCH = 50;

/** How long to wait when one cannot be told, in milliseconds: doubled each time, up to the second. */
const FIRST_WAIT_MS = 250;
/** Also the longest time without a look. */
const LONGEST_WAIT_MS = 30_000;

export interface OutboxOptions<Row> {
  readonly timers: Timers;
  readonly log: Logger;
  /** Said in the log when a row cannot be told. */
  readonly what: string;
  /** Up to so many rows that are still to be told, the first of them first. */
  readonly first: (limit: number) => Promise<Row[]>;
  /** Tells one; throws where another try may succeed, and only there. */
  readonly tell: (row: Row, signal: AbortSignal) => Promise<void>;
  /** Forgets one that was told. */
  readonly drop: (row: Row) => Promise<void>;
}

/**
 * Tells another service what a store keeps for it, one after the other and each at least once: rows are written in the
 * transaction of what they tell, and dropped when they were told. While that service is away, the rows wait.
 */
export class Outbox<Row> {
  readonly #options: OutboxOptions<Row>;
  readonly #closing = new AbortController();
  #wake: () => void = () => {};
  /** Whether something came while this looked at what was there. */
  #woken = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: OutboxOptions<Row>) {
    this.#options = options;
  }

  start(): void {
    // The services of one process start one after the other; nobody is called before all of them are up.
    this.#done = pause(0, this.#options.timers, this.#closing.signal).then(() => this.#run());
  }

  /** There is something new. */
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
        this.#options.log.warn({ err: error, waitMs }, `${this.#options.what}; trying again`);
        // What comes meanwhile does not make the other service answer any sooner.
        await pause(waitMs, timers, signal);
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      }
    }
  }

  /** @returns whether there may be more */
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
