import { pause, type Timers } from "@depute/core";

/** Maximum milliseconds of one wait. After such a wait, `waitMs` is called again. */
const LONGEST_WAIT_MS = 1_000;

export interface Pace<T> {
  readonly timers: Timers;
  /** When the signal aborts, a wait ends early. */
  readonly signal: AbortSignal;
  /** Returns the milliseconds for which no item may be read; 0 if an item may be read now. */
  waitMs(): number;
  /** Called with each item, before it is yielded. */
  onItem?(item: T): void;
}

/** Yields the items of a source. Waits before each item until the pace allows it. */
export function paced<T>(source: AsyncIterable<T>, pace: Pace<T>): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]();
      return {
        async next() {
          for (let waitMs = pace.waitMs(); waitMs > 0 && !pace.signal.aborted; waitMs = pace.waitMs()) {
            await pause(Math.min(waitMs, LONGEST_WAIT_MS), pace.timers, pace.signal);
          }
          const item = await iterator.next();
          if (item.done !== true) pace.onItem?.(item.value);
          return item;
        },
        async return(value?: unknown) {
          return (await iterator.return?.(value)) ?? { done: true as const, value };
        },
      };
    },
  };
}
