import type { Clock } from "@depute/core";

const MINUTE_MS = 60_000;

/** Admits a maximum number of events per minute. The first event after the end of a minute begins the next minute. */
export class MinuteLimit {
  readonly #max: number;
  readonly #clock: Clock;
  #begin = Number.NEGATIVE_INFINITY;
  #count = 0;

  constructor(max: number, clock: Clock) {
    this.#max = max;
    this.#clock = clock;
  }

  /**
   * Counts an event.
   *
   * @returns `within` up to the limit, `over` for the minute's first event above the limit, `silent` for each later
   * event of the minute
   */
  take(): "within" | "over" | "silent" {
    const now = this.#clock.monotonic();
    if (now - this.#begin >= MINUTE_MS) {
      this.#begin = now;
      this.#count = 0;
    }
    this.#count += 1;
    if (this.#count <= this.#max) return "within";
    return this.#count === this.#max + 1 ? "over" : "silent";
  }
}
