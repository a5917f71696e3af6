import { v7, validate } from "uuid";
import { systemClock } from "./clock.ts";
import { randomBytes } from "./random.ts";

/** A pool of random bytes for many ids. One call for the bytes of many ids costs a sixth of one call for each id. */
const pool = new Uint8Array(4096);
const BYTES = 16;
let used = pool.length;

/** The millisecond of the latest id, and the id's number within that millisecond. */
interface Latest {
  msecs: number;
  seq: number;
}

/** Ids with the system's time and ids with a given time are counted separately. */
const bySystem: Latest = { msecs: 0, seq: 0 };
const byCaller: Latest = { msecs: 0, seq: 0 };

/**
 * Returns a new identifier: UUIDv7 in lower case. Later ids of one process and one source of time sort later.
 *
 * @param nowMs the time in epoch milliseconds, e.g. that of a service's injected clock; the system's time when absent
 */
export function newId(nowMs?: number): string {
  if (used === pool.length) {
    pool.set(randomBytes(pool.length));
    used = 0;
  }
  const random = pool.subarray(used, used + BYTES);
  used += BYTES;
  const latest = nowMs === undefined ? bySystem : byCaller;
  const now = nowMs ?? systemClock.now();
  if (now > latest.msecs) {
    latest.msecs = now;
    latest.seq = new DataView(random.buffer, random.byteOffset).getInt32(0);
  } else {
    latest.seq = (latest.seq + 1) | 0;
    // All sequence numbers of this millisecond are used, so the id gets the next millisecond.
    if (latest.seq === 0) latest.msecs++;
  }
  return v7({ random, ...latest });
}

/** Whether a text is a UUID of any version in its 36-character form. */
export function isUuid(text: string): boolean {
  return validate(text);
}
