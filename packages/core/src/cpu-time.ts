import { systemClock } from "./clock.ts";

/**
 * Returns the processor time that this thread has used, in milliseconds. Linux raises the count in steps of a few
 * milliseconds. Sums over many short sections are nevertheless correct on average.
 */
export function threadCpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/**
 * Returns milliseconds from whose differences the duration of a synchronous step follows. Unlike the time of a Clock, a
 * test does not control it, because a step takes real time.
 */
export function stepMs(): number {
  return systemClock.monotonic();
}
