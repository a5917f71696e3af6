import { WeightedLru } from "../lru.ts";

/** A job that took less than this was quick, in milliseconds. */
export const QUICK_MS = 50;

/**
 * One that was trusted and took as long as this is not trusted again, in milliseconds. Much more than quick: a busy
 * machine, or a thread that sees the schema for the first time, is not the schema's fault.
 */
export const SLOW_MS = 250;

/** Keys that are remembered. */
const MAX_KEYS = 10_000;

/**
 * Which schemas and verifications were quick when they last ran. They get the thread that is kept free for them, so
 * that those who wait for a known contract do not wait for a stranger's schema. One that was trusted and then took long
 * is not trusted again: its time depends on the value, and it may be made to.
 */
export class Reputation {
  readonly #known = new WeightedLru<"quick" | "banned">(MAX_KEYS);

  isQuick(key: string | undefined): boolean {
    return key !== undefined && this.#known.get(key) === "quick";
  }

  /** @param ms how long a run took; Infinity for one that was stopped */
  ran(key: string | undefined, ms: number): void {
    if (key === undefined) return;
    const before = this.#known.get(key);
    if (before === "banned") return;
    if (ms < QUICK_MS) this.#known.set(key, "quick", 1);
    else if (ms === Infinity || (before === "quick" && ms >= SLOW_MS)) this.#known.set(key, "banned", 1);
  }
}
