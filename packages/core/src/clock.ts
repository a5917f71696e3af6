/** The current time. Code that depends on time gets a Clock, so that tests need not wait. */
export interface Clock {
  /** Returns milliseconds since the Unix epoch. */
  now(): number;
  /** Returns milliseconds of a clock that never goes back. Only differences between two readings have a meaning. */
  monotonic(): number;
}

/** One-shot timers, and turns of the event loop. */
export interface Timers {
  /**
   * Calls `fn` once, after `ms` milliseconds. The returned function cancels the timer; after the call of `fn` it has no
   * effect.
   */
  after(ms: number, fn: () => void): () => void;
  /** Resolves after the event loop has run the callbacks that were already queued. */
  nextTurn(): Promise<void>;
}

export const systemClock: Clock = { now: () => Date.now(), monotonic: () => performance.now() };

// The longest delay of setTimeout, a signed 32-bit number. A longer delay would end at once.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export const systemTimers: Timers = {
  after(ms, fn) {
    const due = Date.now() + ms;
    let handle: ReturnType<typeof setTimeout>;
    const arm = (rest: number) => {
      handle =
        rest > LONGEST_TIMEOUT_MS
          ? setTimeout(() => arm(due - Date.now()), LONGEST_TIMEOUT_MS)
          : setTimeout(fn, Math.max(0, rest));
    };
    arm(ms);
    return () => clearTimeout(handle);
  },
  nextTurn: () => new Promise((resolve) => setImmediate(resolve)),
};

interface ManualTimer {
  due: number;
  order: number;
  fn: () => void;
}

/** A clock with timers, for tests. Its time changes only when the test calls `advance` or `set`. */
export class ManualClock implements Clock, Timers {
  #now: number;
  #passed = 0;
  #order = 0;
  #timers = new Set<ManualTimer>();

  /** @param start milliseconds since the Unix epoch */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#passed;
  }

  /** Resolves without a change of this clock's time. */
  nextTurn(): Promise<void> {
    return systemTimers.nextTurn();
  }

  /** Returns the number of timers that have not run. */
  get pending(): number {
    return this.#timers.size;
  }

  after(ms: number, fn: () => void): () => void {
    const timer = { due: this.#now + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Moves the clock by `ms`. Each timer runs at its own time, even if it was set during the move. */
  advance(ms: number): void {
    this.#moveTo(this.#now + ms);
  }

  /**
   * Sets the clock to a time in epoch milliseconds. Timers that are due by then run. Setting the clock back
   * runs no timer.
   */
  set(time: number): void {
    this.#moveTo(time);
  }

  #moveTo(time: number): void {
    for (let next = this.#next(time); next !== undefined; next = this.#next(time)) {
      this.#timers.delete(next);
      this.#goTo(Math.max(this.#now, next.due));
      next.fn();
    }
    this.#goTo(time);
  }

  #goTo(time: number): void {
    this.#passed += Math.max(0, time - this.#now);
    this.#now = time;
  }

  #next(time: number): ManualTimer | undefined {
    let first: ManualTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.due > time) continue;
      const earlier = first === undefined || timer.due < first.due;
      if (earlier || (timer.due === first?.due && timer.order < first.order)) first = timer;
    }
    return first;
  }
}
