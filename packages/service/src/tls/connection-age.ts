import type { Random, Timers } from "@depute/core";

/**
 * The fraction by which each connection's maximum age varies. So connections that began together do not reconnect
 * together.
 */
const JITTER = 0.1;

export interface ConnectionAge {
  /** Maximum age in milliseconds; 0 for no limit. */
  readonly maxAgeMs: number;
  readonly timers: Timers;
  readonly random: Random;
}

/** Calls `expire` once, after 90 % to 110 % of `maxAgeMs`. The returned function cancels the call. */
export function limitAge({ maxAgeMs, timers, random }: ConnectionAge, expire: () => void): () => void {
  if (maxAgeMs === 0) return () => {};
  return timers.after(Math.round(maxAgeMs * (1 + JITTER * (2 * random() - 1))), expire);
}
