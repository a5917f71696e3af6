import type { Timers } from "@depute/core";

/** How a log is followed. `Position` counts up without ever going back. */
export interface FollowOptions<Item, Position extends number | bigint> {
  /** The items after a position, in order, at most `limit` of them. */
  read: (after: Position, limit: number) => Promise<readonly Item[]> | readonly Item[];
  position: (item: Item) => Position;
  /** Where the reader already is: items after it are given. */
  after: Position;
  /** Subscribes to wake-ups; gives back how to unsubscribe. A lost wake-up costs `pollMs`, never an item. */
  wake: (listener: () => void) => () => void;
  /** Milliseconds between looks when nothing wakes. */
  pollMs: number;
  timers: Timers;
  /** Ends the following, without an error. */
  signal: AbortSignal;
  /** Whether an item is the last one; it is given, and then the following ends. */
  done?: (item: Item) => boolean;
  /** Items a read; bounds what is held in memory. */
  batch?: number;
}

export const DEFAULT_BATCH = 100;

/**
 * Follows an append-only log: what is there, then what is added, until the last item or the signal.
 *
 * Wake-ups are listened for before the first read and noted during each, so none is lost between a read that found
 * nothing and the wait after it.
 *
 * @throws what `read` throws; Error when `read` gives an item that is not after the position it was asked for
 */
export async function* follow<Item, Position extends number | bigint>(
  options: FollowOptions<Item, Position>,
): AsyncGenerator<Item, void, undefined> {
  const { read, position, wake, pollMs, timers, signal, done, batch = DEFAULT_BATCH } = options;
  let after = options.after;
  let woken = false;
  let resume: (() => void) | undefined;
  const rouse = () => {
    woken = true;
    resume?.();
  };
  const unsubscribe = wake(rouse);
  signal.addEventListener("abort", rouse, { once: true });
  try {
    while (!signal.aborted) {
      woken = false;
      const items = await read(after, batch);
      for (const item of items) {
        if (signal.aborted) return;
        const at = position(item);
        if (at <= after) throw new Error(`a log was read after ${after} and gave ${at}`);
        after = at;
        yield item;
        if (done?.(item) === true) return;
      }
      if (items.length >= batch || woken || signal.aborted) continue;
      await new Promise<void>((resolve) => {
        const cancel = timers.after(pollMs, resolve);
        resume = () => {
          cancel();
          resolve();
        };
      });
      resume = undefined;
    }
  } finally {
    signal.removeEventListener("abort", rouse);
    unsubscribe();
  }
}
