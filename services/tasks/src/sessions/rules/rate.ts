/** Milliseconds in which an agent earns a full allowance. */
export const MINUTE_MS = 60_000;

/** The allowance of an agent. */
export interface Bucket {
  /** Number of messages that the agent may send immediately. It may be fractional. */
  readonly remaining: number;
  /** The time of the agent's last message, allowed or refused, in epoch milliseconds. */
  readonly atMs: number;
}

export interface Taken {
  /** The allowance after the message. A refused message does not reduce it. */
  readonly bucket: Bucket;
  /** Milliseconds until the agent may send the message; undefined if the agent may send it now. */
  readonly waitMs: number | undefined;
}

/**
 * Counts a message against an agent's rate. An agent may send `perMinute` messages at once, and then only at the
 * average rate.
 *
 * @param before the allowance after the last message; undefined for a full allowance
 */
export function takeMessage(before: Bucket | undefined, perMinute: number, nowMs: number): Taken {
  const earned = before === undefined ? 0 : ((nowMs - before.atMs) * perMinute) / MINUTE_MS;
  const remaining =
    before === undefined ? perMinute : Math.min(perMinute, before.remaining + Math.max(0, earned));
  const isAllowed = remaining >= 1;
  return {
    bucket: { remaining: isAllowed ? remaining - 1 : remaining, atMs: nowMs },
    waitMs: isAllowed ? undefined : Math.ceil(((1 - remaining) * MINUTE_MS) / perMinute),
  };
}
