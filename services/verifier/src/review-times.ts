import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger, type WorkLease } from "@depute/service";
import type { Reviews } from "./reviews.ts";

/** Maximum number of reviews in one transaction. */
const BATCH = 100;
/** Maximum wait of the loop in milliseconds, so that the loop notices soon that the clock was set. */
const MAX_WAIT_MS = 1000;

export interface ReviewTimesOptions {
  readonly reviews: Reviews;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The lease of the replica that runs the loop; undefined without replicas. */
  readonly lease?: WorkLease | undefined;
}

/**
 * Records when a review escalates or times out, so that watchers get the change. Decisions do not depend on these
 * records, because rules/review.ts computes a review's state from the clock.
 */
export function reviewTimes({ reviews, clock, timers, log, lease }: ReviewTimesOptions): DeadlineLoop {
  const loop = new DeadlineLoop({
    clock,
    timers,
    log,
    failureMessage: "escalations and time-outs of reviews cannot be recorded",
    maxWaitMs: MAX_WAIT_MS,
    lease,
    async runDueWork(signal) {
      while (!signal.aborted && (await reviews.applyTime(BATCH)));
      return reviews.earliestDue();
    },
  });
  reviews.onDue((atMs) => loop.notice(atMs));
  return loop;
}
