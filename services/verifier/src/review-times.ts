import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger, type WorkLease } from "@depute/service";
import type { Reviews } from "./reviews.ts";

/** Maximum number of reviews in one transaction. */
const BATCH = 100;
/** Maximum wait of the loop in milliseconds, so that it notices a jump of the clock. */
const MAX_WAIT_MS = 1000;

export interface ReviewTimesOptions {
  readonly reviews: Reviews;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** The lease of the loop; undefined without replicas. */
  readonly lease?: WorkLease | undefined;
}

/**
 * Records escalations and time-outs, so that watchers get them. Decisions do not depend on this loop, because the rules
 * compute a review's state from the clock (rules/review.ts).
 */
export function reviewTimes({ reviews, clock, timers, log, lease }: ReviewTimesOptions): DeadlineLoop {
  const loop = new DeadlineLoop({
    clock,
    timers,
    log,
    failureMessage: "record of review times failed",
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
