import type { HandlerContext } from "@connectrpc/connect";
import { ALL_KEYS, type Bus } from "@depute/bus";
import type { Timers } from "@depute/core";
import { linkSignals } from "./aborts.ts";

interface Waiting {
  readonly listeners: Set<() => void>;
  version: number;
}

/** The listeners for wake-ups of one topic, by key. A wake-up costs time only for the listeners of its key. */
export class WakeUps {
  readonly #waiting = new Map<string, Waiting>();
  readonly #unsubscribe: () => void;

  constructor(bus: Bus, topic: string) {
    this.#unsubscribe = bus.subscribe(topic, (key) => {
      if (key !== ALL_KEYS) wake(this.#waiting.get(key));
      else for (const waiting of this.#waiting.values()) wake(waiting);
    });
  }

  /**
   * Returns the version of a key. It is 0 while the key has no listener. It becomes 1 with the first listener, and
   * increases by 1 with each wake-up.
   */
  version(key: string): number {
    return this.#waiting.get(key)?.version ?? 0;
  }

  /** Calls `listener` at each wake-up of `key`. The returned function unsubscribes the listener. */
  on(key: string, listener: () => void): () => void {
    const waiting = this.#waiting.get(key) ?? { listeners: new Set(), version: 1 };
    waiting.listeners.add(listener);
    this.#waiting.set(key, waiting);
    return () => {
      waiting.listeners.delete(listener);
      if (waiting.listeners.size === 0 && this.#waiting.get(key) === waiting) this.#waiting.delete(key);
    };
  }

  close(): void {
    this.#unsubscribe();
    this.#waiting.clear();
  }
}

function wake(waiting: Waiting | undefined): void {
  if (waiting === undefined) return;
  // The version increases before the listeners run, so that their reads see the new version.
  waiting.version++;
  for (const listener of waiting.listeners) listener();
}

/** Milliseconds before a call's deadline that are reserved for the response. */
const ANSWER_MS = 500;

export interface WaitOptions {
  readonly wakeUps: Pick<WakeUps, "on">;
  readonly timers: Timers;
  /** Milliseconds between reads while no wake-up comes. */
  readonly pollMs: number;
  /** Aborts when the process drains. `waitFor` then ends as if its timeout had passed. */
  readonly stopping: AbortSignal;
}

/**
 * Calls `read` at once, at each wake-up of a key, and every `pollMs`, until it returns a value or the timeout has
 * passed.
 *
 * @param timeoutMs the maximum wait, which the call's own deadline may shorten
 * @returns the value; undefined if the timeout passed, the caller disconnected or the process drains first
 * @throws the errors of `read`
 */
export async function waitFor<T>(
  { wakeUps, timers, pollMs, stopping }: WaitOptions,
  key: string,
  timeoutMs: number,
  context: Pick<HandlerContext, "signal" | "timeoutMs">,
  read: () => Promise<T | undefined>,
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
      const found = await read();
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

/** Options for following a log. Positions in the log only increase. */
export interface FollowOptions<Item, Position extends number | bigint> {
  /** Returns the items after a position, in order, up to `limit` of them. */
  read: (after: Position, limit: number) => Promise<readonly Item[]> | readonly Item[];
  position: (item: Item) => Position;
  /** The position that the reader has already reached. `follow` returns only later items. */
  after: Position;
  /**
   * Subscribes to wake-ups, and returns a function that unsubscribes. A lost wake-up delays an item by up to `pollMs`,
   * but no item is lost.
   */
  wake: (listener: () => void) => () => void;
  /** Milliseconds between reads while no wake-up comes. */
  pollMs: number;
  timers: Timers;
  /** When this signal aborts, `follow` ends without an error. */
  signal: AbortSignal;
  /** Whether an item is the last item of the log. `follow` ends after it has returned this item. */
  isLast?: (item: Item) => boolean;
  /** Maximum number of items in one read, which limits the memory. Default: DEFAULT_BATCH. */
  batch?: number;
}

export const DEFAULT_BATCH = 100;

/**
 * Follows an append-only log: yields the stored items, and then each new item. The generator ends after the item for
 * which `isLast` returns true, or when the signal aborts. The function subscribes before the first read and notes
 * wake-ups during each read. Therefore no wake-up is lost between an empty read and the wait after it.
 *
 * @throws the errors of `read`; Error when `read` returns an item that is not after the requested position
 */
export async function* follow<Item, Position extends number | bigint>(
  options: FollowOptions<Item, Position>,
): AsyncGenerator<Item, void, undefined> {
  const { read, position, wake, pollMs, timers, signal, isLast: done, batch = DEFAULT_BATCH } = options;
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
        if (at <= after) throw new Error(`the read of a log after position ${after} returned position ${at}`);
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
