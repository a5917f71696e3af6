/** Milliseconds that a quick flush takes at most. The hand-over to another thread takes about as long. */
const QUICK_MS = 0.1;
/** Milliseconds from which a single flush shows that the disk is slow. */
const LONG_MS = 5;
/** A slow flush outweighs this many quick ones, because the scheduler may interrupt a quick flush. */
const SLOW_WEIGHT = 8;
const MAX_WEIGHT = 16;

/**
 * Decides whether flushes may block the event loop. They may until their durations show that the disk is slow, and then
 * never again. A disk whose every flush is slow blocks the event loop three times in the life of a process. A disk in
 * memory, or with a protected cache, waits for no other thread.
 */
export class QuickFlushes {
  #weight = 0;

  get mayBlock(): boolean {
    return this.#weight <= MAX_WEIGHT;
  }

  /** Counts a flush that blocked the event loop, by its duration in milliseconds. */
  took(ms: number): void {
    if (ms >= LONG_MS) this.#weight = MAX_WEIGHT + 1;
    else if (ms > QUICK_MS) this.#weight += SLOW_WEIGHT;
    else this.#weight = Math.max(0, this.#weight - 1);
  }
}
