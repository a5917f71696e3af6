import { ManualClock } from "@depute/core";

/**
 * A clock for tests of measured durations. Each reading of `monotonic` moves that time by `tickMs`, so a measured step
 * takes at least `tickMs`. The time of `now`, and the timers, move only when the test calls `advance` or `set`.
 */
export class TickingClock extends ManualClock {
  readonly #tickMs: number;
  #tickedMs = 0;

  constructor(tickMs: number) {
    super();
    this.#tickMs = tickMs;
  }

  override monotonic(): number {
    this.#tickedMs += this.#tickMs;
    return super.monotonic() + this.#tickedMs;
  }
}
