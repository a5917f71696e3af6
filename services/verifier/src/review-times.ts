import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { Reviews } from "./reviews.ts";

/** Reviews that one transaction records. */
const BATCH = 100;
/** The longest time without a look, so that a clock that jumps is followed; milliseconds. */
const MAX_WAIT_MS = 1000;

export interface ReviewTimesOptions {
  readonly reviews: Reviews;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Tells watchers of escalations and time-outs. Decisions do not wait for it: what a review is at a time is a comparison
 * (rules/review.ts).
 */
export function reviewTimes({ reviews, clock, timers, log }: ReviewTimesOptions): DeadlineLoop {
  const loop = new DeadlineLoop({
    clock,
    timers,
    log,
    what: "times of reviews could not be recorded",
    maxWaitMs: MAX_WAIT_MS,
    async look(signal) {
      while (!signal.aborted && (await reviews.applyTime(BATCH)));
      return reviews.earliestDue();
    },
  });
  reviews.onDue((atMs) => loop.notice(atMs));
  return loop;
}
