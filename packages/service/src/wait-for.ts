import type { HandlerContext } from "@connectrpc/connect";
import type { Timers } from "@depute/core";
import { linkSignals } from "./abort.ts";
import type { WakeUps } from "./wake-ups.ts";

/** What is kept of a call's own deadline for its answer, milliseconds. */
const ANSWER_MS = 500;

export interface WaitOptions {
  readonly wakeUps: Pick<WakeUps, "on">;
  readonly timers: Timers;
  /** Milliseconds between looks when nothing wakes. */
  readonly pollMs: number;
  /** Aborts when the process drains: waiting ends, as if the time were up. */
  readonly stopping: AbortSignal;
}

/**
 * Looks again and again, at each wake-up of a key, until there is something or the time is up.
 *
 * @param timeoutMs how long to wait at most; the call's own deadline bounds it, too
 * @returns undefined when the time was up first, or nobody waits for the answer any more
 */
export async function waitFor<T>(
  { wakeUps, timers, pollMs, stopping }: WaitOptions,
  key: string,
  timeoutMs: number,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const callMs = context.timeoutMs();
  const boundMs = Math.min(timeoutMs, callMs === undefined ? timeoutMs : callMs - ANSWER_MS);
  const link = linkSignals(context.signal, stopping);
  let woken = false;
  let timeUp = boundMs <= 0;
  let resume = () => {};
  const rouse = () => {
    woken = true;
    resume();
  };
  const unsubscribe = wakeUps.on(key, rouse);
  const cancelEnd = timers.after(Math.max(0, boundMs), () => {
    timeUp = true;
    rouse();
  });
  link.signal.addEventListener("abort", rouse, { once: true });
  try {
    for (;;) {
      const over = timeUp || link.signal.aborted;
      woken = false;
      const found = await look();
      if (found !== undefined || over) return found;
      if (woken || link.signal.aborted) continue;
      await new Promise<void>((resolve) => {
        const cancelPoll = timers.after(pollMs, resolve);
        resume = () => {
          cancelPoll();
          resolve();
        };
      });
    }
  } finally {
    cancelEnd();
    link.signal.removeEventListener("abort", rouse);
    link.release();
    unsubscribe();
  }
}
