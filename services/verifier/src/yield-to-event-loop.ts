import type { Clock, Timers } from "@depute/core";

/** Time slice in milliseconds. The clock is read only between pieces of work, so a slice may last somewhat longer. */
const TURN_MS = 2;

/** Yields to the event loop once the time slice is used up. */
export type YieldToEventLoop = () => Promise<void>;

/**
 * Creates the yield function of one request. All steps of a request share the function, and so share one time slice.
 */
export function createYieldToEventLoop({
  clock,
  timers,
}: {
  clock: Clock;
  timers: Timers;
}): YieldToEventLoop {
  let until = clock.monotonic() + TURN_MS;
  return async () => {
    if (clock.monotonic() < until) return;
    await timers.nextTurn();
    until = clock.monotonic() + TURN_MS;
  };
}
