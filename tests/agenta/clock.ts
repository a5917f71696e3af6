import type { Clock } from "@depute/core";

/** A running clock that tests can also advance. */
export class ShiftedClock implements Clock {
  #aheadMs = 0;

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  monotonic(): number {
    return performance.now() + this.#aheadMs;
  }

  skip(ms: number): void {
    this.#aheadMs += ms;
  }
}
