import type { Timers } from "./clock.ts";

/**
 * Waits for some milliseconds. The abort of the signal ends the wait early. At its end the wait removes its timer and its
 * listener on the signal, because one signal can serve thousands of waits.
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
