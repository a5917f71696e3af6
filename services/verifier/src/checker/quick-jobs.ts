import { WeightedLru } from "../weighted-lru.ts";

/** A job that runs for less than this many milliseconds counts as quick. */
export const QUICK_MS = 50;

/**
 * If a job with a quick key runs for at least this many milliseconds, the class bans the key. The limit is far above
 * QUICK_MS, because a busy machine or a first compilation also slows a run.
 */
export const SLOW_MS = 250;

/** Maximum number of keys that the class remembers. */
const MAX_KEYS = 10_000;

/**
 * Remembers which schemas and rules ran quickly. One thread runs only quick jobs, so callers with known contracts never
 * wait behind unknown schemas. If a job with a quick key runs slowly, the class bans the key from that thread. The run
 * time of such a schema depends on the value, and a caller could choose slow values to occupy the thread.
 */
export class QuickJobs {
  readonly #knownKeys = new WeightedLru<"quick" | "banned">(MAX_KEYS);

  isQuick(key: string | undefined): boolean {
    return key !== undefined && this.#knownKeys.get(key) === "quick";
  }

  /**
   * Records the run time of one job.
   *
   * @param ms the run time in milliseconds; Infinity if the pool stopped the job
   */
  record(key: string | undefined, ms: number): void {
    if (key === undefined) return;
    const before = this.#knownKeys.get(key);
    if (before === "banned") return;
    if (ms < QUICK_MS) this.#knownKeys.set(key, "quick", 1);
    else if (ms === Infinity || (before === "quick" && ms >= SLOW_MS)) this.#knownKeys.set(key, "banned", 1);
  }
}
