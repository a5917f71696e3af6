import type { Timers } from "./clock.ts";

/**
 * Resolves after some milliseconds, or as soon as the signal aborts. Leaves no timer and no listener behind, so a signal
 * may last for many pauses.
 *
 * @param untilWoken receives a function that ends the pause early, and that has no effect after the pause
 */
export function pause(
  ms: number,
  timers: Timers,
  signal?: AbortSignal,
  untilWoken?: (wake: () => void) => void,
): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      cancel();
      signal?.removeEventListener("abort", over);
      resolve();
    };
    const cancel = timers.after(ms, over);
    signal?.addEventListener("abort", over, { once: true });
    untilWoken?.(over);
  });
}
