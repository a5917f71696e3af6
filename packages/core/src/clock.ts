/** The present time. Injected wherever time matters, so that tests do not sleep. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
}

/** One-shot timers. */
export interface Timers {
  /** Calls `fn` once, `ms` milliseconds from now; the answer cancels it, and does nothing once it has run. */
  after(ms: number, fn: () => void): () => void;
}

export const systemClock: Clock = { now: () => Date.now() };

// setTimeout takes a signed 32-bit delay and fires at once when given more.
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
};

interface ManualTimer {
  due: number;
  order: number;
  fn: () => void;
}

/** A clock and its timers that move only when told; for tests. */
export class ManualClock implements Clock, Timers {
  #now: number;
  #order = 0;
  #timers = new Set<ManualTimer>();

  /** @param start milliseconds since the Unix epoch */
  constructor(start: number = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  /** How many timers wait. */
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

  /** Moves on by `ms`, running each timer at its own time, timers that were set meanwhile included. */
  advance(ms: number): void {
    this.#moveTo(this.#now + ms);
  }

  /** Jumps to a time (epoch ms); timers due by then run. Going back runs none. */
  set(time: number): void {
    this.#moveTo(time);
  }

  #moveTo(time: number): void {
    for (let next = this.#next(time); next !== undefined; next = this.#next(time)) {
      this.#timers.delete(next);
      this.#now = Math.max(this.#now, next.due);
      next.fn();
    }
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
