import { ErrorReason, pause, type Timers } from "@depute/core";
import { reasonOf } from "./errors-on-wire.ts";
import type { Logger } from "./log.ts";
import type { WorkLease } from "./shared-work.ts";

/** Milliseconds from the end of a stream to its first reopening. The wait doubles each time, up to LONGEST_WAIT_MS. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

export interface StreamFollowerOptions {
  /** The name of the followed stream in the log, such as "revocations". */
  readonly streamName: string;
  /**
   * Follows the stream from the stored position until the stream ends, and calls `onItem` for each item. After an item,
   * the next wait is FIRST_WAIT_MS again. Throws the errors of the stream, and errors while an item is processed.
   */
  readonly follow: (signal: AbortSignal, onItem: () => void) => Promise<void>;
  readonly timers: Timers;
  readonly log: Logger;
  /**
   * The lease of the work on the stream. Only the replica that holds the lease follows the stream. Absent for a service
   * without replicas.
   */
  readonly lease?: WorkLease | undefined;
}

/**
 * Follows a stream of another service while this service runs. The follower opens the stream again whenever the
 * stream ends or breaks.
 */
export class StreamFollower {
  readonly #options: StreamFollowerOptions;
  readonly #closing = new AbortController();
  /** Aborts when the follower closes or loses its lease. */
  #following = new AbortController();
  #wake = () => {};
  #done: Promise<void> = Promise.resolve();

  constructor(options: StreamFollowerOptions) {
    this.#options = options;
    options.lease?.onTaken(() => this.#wake());
    options.lease?.onLost(() => this.#following.abort());
  }

  start(): void {
    // The services of one process start one after the other. The pause lets all of them listen before the first call.
    this.#done = pause(0, this.#options.timers, this.#closing.signal).then(() => this.#run());
  }

  /** Stops following, after `follow` has finished its current item. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#following.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { streamName, follow, timers, log } = this.#options;
    const { signal } = this.#closing;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      await this.#untilHeld();
      if (signal.aborted) return;
      this.#following = new AbortController();
      const following = this.#following.signal;
      try {
        await follow(following, () => {
          waitMs = FIRST_WAIT_MS;
        });
      } catch (error) {
        if (signal.aborted) return;
        if (following.aborted) {
          waitMs = FIRST_WAIT_MS / 2;
          continue;
        }
        // A draining process ends its streams, so SHUTTING_DOWN causes no warning. If that process does not start
        // again, the next attempt logs a warning.
        const level = reasonOf(error) === ErrorReason.SHUTTING_DOWN ? "debug" : "warn";
        log[level]({ err: error, waitMs }, `${streamName} cannot be followed; trying again`);
      }
      await pause(waitMs, timers, signal);
    }
  }

  /** Waits until this process holds the lease of the work. */
  async #untilHeld(): Promise<void> {
    const { lease, timers } = this.#options;
    const { signal } = this.#closing;
    while (lease?.isHeld === false && !signal.aborted) {
      await pause(LONGEST_WAIT_MS, timers, signal, (wake) => {
        this.#wake = wake;
      });
    }
  }
}
