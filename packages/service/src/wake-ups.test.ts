import { ManualClock } from "@depute/core";
import { describe, expect, it } from "vitest";
import { type FollowOptions, follow } from "./wake-ups.ts";

const POLL_MS = 1000;

/** Returns a log in memory, a function that wakes its readers, and one reader of the log. */
function setUp(items: number[], changes: Partial<FollowOptions<number, number>> = {}) {
  const clock = new ManualClock(0);
  const listeners = new Set<() => void>();
  const abort = new AbortController();
  const reads: [number, number][] = [];
  const seen: number[] = [];
  let finished = false;
  const options: FollowOptions<number, number> = {
    read: async (after, limit) => {
      reads.push([after, limit]);
      return items.filter((item) => item > after).slice(0, limit);
    },
    position: (item) => item,
    after: 0,
    wake: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    pollMs: POLL_MS,
    timers: clock,
    signal: abort.signal,
    ...changes,
  };
  const wake = () => {
    for (const listener of listeners) listener();
  };
  const run = (async () => {
    for await (const item of follow(options)) seen.push(item);
    finished = true;
  })();
  return { clock, listeners, abort, reads, seen, wake, run, finished: () => finished };
}

/** Waits until all pending work that waits for no timer has run. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("follow", () => {
  it("returns existing items in batches, and then waits", async () => {
    const { seen, reads, clock, abort } = setUp([1, 2, 3, 4, 5], { batch: 2 });
    await settle();
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect(reads).toEqual([
      [0, 2],
      [2, 2],
      [4, 2],
    ]);
    expect(clock.pending).toBe(1);
    abort.abort();
  });

  it("begins after its cursor", async () => {
    const { seen, abort } = setUp([1, 2, 3], { after: 2 });
    await settle();
    expect(seen).toEqual([3]);
    abort.abort();
  });

  it("reads again after a wake-up, without a wait", async () => {
    const items = [1];
    const { seen, wake, abort, clock } = setUp(items);
    await settle();
    items.push(2);
    wake();
    await settle();
    expect(seen).toEqual([1, 2]);
    expect(clock.now()).toBe(0);
    expect(clock.pending).toBe(1);
    abort.abort();
  });

  it("reads again after the poll interval when no wake-up arrives", async () => {
    const items = [1];
    const { seen, clock, abort } = setUp(items);
    await settle();
    items.push(2);
    clock.advance(POLL_MS - 1);
    await settle();
    expect(seen).toEqual([1]);
    clock.advance(1);
    await settle();
    expect(seen).toEqual([1, 2]);
    abort.abort();
  });

  it("does not lose a wake-up during a read", async () => {
    const items: number[] = [];
    let answer: (items: number[]) => void = () => {};
    const { seen, wake, abort } = setUp(items, {
      read: () =>
        new Promise((resolve) => {
          answer = resolve;
        }),
    });
    await settle();
    wake();
    answer([]);
    await settle();
    answer([1]);
    await settle();
    expect(seen).toEqual([1]);
    abort.abort();
  });

  it("does not lose a wake-up while its reader is busy", async () => {
    const items = [1];
    const listeners = new Set<() => void>();
    const clock = new ManualClock(0);
    const stream = follow<number, number>({
      read: async (after) => items.filter((item) => item > after),
      position: (item) => item,
      after: 0,
      wake: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      pollMs: POLL_MS,
      timers: clock,
      signal: new AbortController().signal,
    });
    expect((await stream.next()).value).toBe(1);
    items.push(2);
    for (const listener of listeners) listener();
    expect((await stream.next()).value).toBe(2);
    await stream.return();
    expect(listeners.size).toBe(0);
  });

  it("ends after the last item", async () => {
    const { seen, run, listeners, clock } = setUp([1, 2, 3], { isLast: (item) => item === 2 });
    await run;
    expect(seen).toEqual([1, 2]);
    expect(listeners.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it("ends without an error when its signal aborts", async () => {
    const { run, abort, listeners, clock, finished } = setUp([1]);
    await settle();
    abort.abort();
    await run;
    expect(finished()).toBe(true);
    expect(listeners.size).toBe(0);
    expect(clock.pending).toBe(0);
  });

  it("reads nothing when its signal has aborted before", async () => {
    const { run, reads } = setUp([1], { signal: AbortSignal.abort() });
    await run;
    expect(reads).toEqual([]);
  });

  it("forwards the error of a read, and releases its subscription", async () => {
    const { run, listeners } = setUp([], {
      read: async () => {
        throw new Error("the store is away");
      },
    });
    await expect(run).rejects.toThrow("the store is away");
    expect(listeners.size).toBe(0);
  });

  it("does not repeat forever if a store ignores the cursor", async () => {
    const { run, seen } = setUp([], { read: async () => [1], batch: 1 });
    await expect(run).rejects.toThrow("the read of a log after position 1 returned position 1");
    expect(seen).toEqual([1]);
  });
});
