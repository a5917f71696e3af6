import { pause, type Timers } from "@depute/core";
import type { Logger } from "./log.ts";
import type { WorkLease } from "./shared-work.ts";

/** Maximum number of rows in one read. */
const BATCH = 50;

/**
 * Milliseconds from a failed delivery to its retry. The wait doubles with each further failure, up to LONGEST_WAIT_MS.
 */
const FIRST_WAIT_MS = 250;
/** Maximum wait after a failed delivery, and maximum time between two reads of the rows, in milliseconds. */
const LONGEST_WAIT_MS = 30_000;
/**
 * Maximum milliseconds between two reads of the rows if other replicas also write rows, because their wake-ups may be
 * lost. The wait after a failed delivery may be longer.
 */
const LONGEST_SHARED_WAIT_MS = 2_000;

export interface OutboxOptions<Row> {
  readonly timers: Timers;
  readonly log: Logger;
  /** The log message of a failed delivery. */
  readonly failureMessage: string;
  /** Reads up to `limit` undelivered rows, oldest first. */
  readonly first: (limit: number) => Promise<Row[]>;
  /** Delivers one row. If the function throws an error, the row is delivered again later. */
  readonly tell: (row: Row, signal: AbortSignal) => Promise<void>;
  /** Deletes a row after its delivery. */
  readonly drop: (row: Row) => Promise<void>;
  /**
   * The lease of the delivery. Only the replica that holds the lease delivers. Absent for a service without replicas.
   */
  readonly lease?: WorkLease | undefined;
}

/**
 * Delivers rows of a store to another service, in order and each at least once. The transaction that makes a change
 * also inserts the row that reports it. The outbox deletes a row after its delivery. While the other service is
 * unavailable, the rows wait. If a service has replicas, the replica with the lease delivers. A row may be delivered
 * twice when the lease changes its holder.
 */
export class Outbox<Row> {
  readonly #options: OutboxOptions<Row>;
  readonly #closing = new AbortController();
  #wake: () => void = () => {};
  /** Whether a wake-up has come since the current read began, so that another read must follow. */
  #woken = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: OutboxOptions<Row>) {
    this.#options = options;
    options.lease?.onTaken(() => this.#wakeOwn());
    options.lease?.onWake(() => this.#wakeOwn());
  }

  start(): void {
    // The services of one process start one after the other. The pause lets all of them listen before the first
    // delivery.
    this.#done = pause(0, this.#options.timers, this.#closing.signal).then(() => this.#run());
  }

  /** Wakes the delivery at the replica that delivers. Call it after a row was inserted. */
  wake(): void {
    const { lease } = this.#options;
    if (lease?.isHeld === false) lease.wakeHolder();
    else this.#wakeOwn();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  /** Whether this process may deliver now: it is not closing, and no other replica holds the lease. */
  #mayTell(): boolean {
    return !this.#closing.signal.aborted && this.#options.lease?.isHeld !== false;
  }

  #wakeOwn(): void {
    this.#woken = true;
    this.#wake();
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { timers, lease } = this.#options;
    const longestWaitMs = lease === undefined ? LONGEST_WAIT_MS : LONGEST_SHARED_WAIT_MS;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; ) {
      this.#woken = false;
      try {
        const isMore = await this.#tellBatch(() => {
          waitMs = FIRST_WAIT_MS;
        });
        if (!isMore && !this.#woken) {
          await pause(longestWaitMs, timers, signal, (wake) => {
            this.#wake = wake;
          });
        }
      } catch (error) {
        if (signal.aborted) return;
        this.#options.log.warn({ err: error, waitMs }, `${this.#options.failureMessage}; trying again`);
        // A wake-up does not end this pause, because a new row does not make the other service available.
        await pause(waitMs, timers, signal);
        waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
      }
    }
  }

  /**
   * Delivers the next rows.
   *
   * @returns whether further rows may wait for delivery
   */
  async #tellBatch(onTold: () => void): Promise<boolean> {
    const { first, tell, drop } = this.#options;
    const { signal } = this.#closing;
    if (!this.#mayTell()) return false;
    const rows = await first(BATCH);
    for (const row of rows) {
      if (!this.#mayTell()) return false;
      await tell(row, signal);
      await drop(row);
      onTold();
    }
    return rows.length === BATCH;
  }
}
