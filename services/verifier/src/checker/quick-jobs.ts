import { WeightedLru } from "../weighted-lru.ts";

/** Run time in milliseconds below which a job counts as quick. */
export const QUICK_MS = 50;

/**
 * Run time in milliseconds from which the class bans a quick key. The limit is far above QUICK_MS, because a busy
 * machine or a first compilation also slows a run.
 */
export const SLOW_MS = 250;

/** Maximum number of keys in the record. */
const MAX_KEYS = 10_000;

/**
 * Records which schemas and rules ran quickly. Quick jobs have a thread of their own, so callers with known contracts
 * never wait behind unknown schemas. A quick key with a slow run is banned. Its run time depends on the value, and a
 * caller could choose slow values to occupy the quick thread.
 */
export class QuickJobs {
  readonly #knownKeys = new WeightedLru<"quick" | "banned">(MAX_KEYS);

  isQuick(key: string | undefined): boolean {
    return key !== undefined && this.#knownKeys.get(key) === "quick";
  }

  /**
   * Records the run time of one job.
   *
   * @param ms milliseconds; Infinity if the pool stopped the job
   */
  record(key: string | undefined, ms: number): void {
    if (key === undefined) return;
    const before = this.#knownKeys.get(key);
    if (before === "banned") return;
    if (ms < QUICK_MS) this.#knownKeys.set(key, "quick", 1);
    else if (ms === Infinity || (before === "quick" && ms >= SLOW_MS)) this.#knownKeys.set(key, "banned", 1);
  }
}
