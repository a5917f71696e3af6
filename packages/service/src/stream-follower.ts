import { ErrorReason, type Timers } from "@depute/core";
import { reasonOf } from "./errors-on-wire.ts";
import type { Logger } from "./log.ts";

/** How long to wait before a stream is opened again, in milliseconds: doubled each time, up to the second. */
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;

export interface StreamFollowerOptions {
  /** What is followed, as the log names it: "revocations". */
  readonly what: string;
  /**
   * Follows the stream from where it was left until it ends, and calls `heard` for each item, so that a stream that
   * breaks after it gave something is opened again soon. Throws what the stream or the work on an item throws.
   */
  readonly follow: (signal: AbortSignal, heard: () => void) => Promise<void>;
  readonly timers: Timers;
  readonly log: Logger;
}

/** Follows a stream of another service for as long as this one runs, and opens it again whenever it ends or breaks. */
export class StreamFollower {
  readonly #options: StreamFollowerOptions;
  readonly #closing = new AbortController();
  #done: Promise<void> = Promise.resolve();

  constructor(options: StreamFollowerOptions) {
    this.#options = options;
  }

  start(): void {
    // The services of one process start one after the other; nobody is called before all of them are up.
    this.#done = pause(0, this.#options.timers, this.#closing.signal).then(() => this.#run());
  }

  /** Ends the following; what `follow` does with an item is waited for. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#done;
  }

  async #run(): Promise<void> {
    const { what, follow, timers, log } = this.#options;
    const { signal } = this.#closing;
    for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
      try {
        await follow(signal, () => {
          waitMs = FIRST_WAIT_MS;
        });
      } catch (error) {
        if (signal.aborted) return;
        // A process that drains ends its streams. One that is gone for longer is told by the next try.
        const level = reasonOf(error) === ErrorReason.SHUTTING_DOWN ? "debug" : "warn";
        log[level]({ err: error, waitMs }, `${what} cannot be followed; trying again`);
      }
      await pause(waitMs, timers, signal);
    }
  }
}

/**
 * Resolves after some milliseconds, or as soon as the signal aborts.
 *
 * @param untilWoken is given what ends the pause sooner; it does nothing once the pause is over
 */
export function pause(
  ms: number,
  timers: Timers,
  signal: AbortSignal,
  untilWoken?: (wake: () => void) => void,
): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      cancel();
      signal.removeEventListener("abort", over);
      resolve();
    };
    const cancel = timers.after(ms, over);
    signal.addEventListener("abort", over, { once: true });
    untilWoken?.(over);
  });
}
