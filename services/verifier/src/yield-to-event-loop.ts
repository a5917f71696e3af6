import type { Clock, Timers } from "@depute/core";

/**
 * Time slice of a request on the event loop, in milliseconds. A request checks the clock only between pieces of work,
 * so a slice may last somewhat longer.
 */
const TURN_MS = 2;

/** Lets other work run on the event loop, if the time slice of the request has passed. */
export type YieldToEventLoop = () => Promise<void>;

/**
 * Creates the yield function of one request. All steps of a request share this function, so they share its time slices.
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
