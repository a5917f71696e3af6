import type { Clock } from "@depute/core";

/** A clock that goes on by itself, and further when it is told to. */
export class ShiftedClock implements Clock {
  #aheadMs = 0;

  now(): number {
    return Date.now() + this.#aheadMs;
  }

  skip(ms: number): void {
    this.#aheadMs += ms;
  }
}
