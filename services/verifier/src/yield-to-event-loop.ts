import type { Clock, Timers } from "@depute/core";

/**
 * Time slice in milliseconds. The request reads the clock only between pieces of work, so a slice may last somewhat
 * longer.
 */
const TURN_MS = 2;

/** Yields to the event loop if the time slice has passed. */
export type YieldToEventLoop = () => Promise<void>;

/** Creates the yield function of one request. All steps of the request share the function, and so one time slice. */
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
