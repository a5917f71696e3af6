/** Maximum lifetime, in milliseconds, of a projection: the JWT that ProjectToken makes from a DelegateOS token. */
export const MAX_PROJECTION_MS = 300_000;
/** Milliseconds for which a key is published before it signs, so that resource servers can read it in time. */
export const PUBLISHED_AHEAD_MS = 3_600_000;
/** Milliseconds for which a replaced key stays published: the lifetime of its last projection, plus some clock skew. */
export const PUBLISHED_AFTER_MS = MAX_PROJECTION_MS + 300_000;

/** The time from which a signing key signs. Times are epoch milliseconds. */
export interface JwtKeyLife {
  readonly kid: string;
  /** The time from which the key signs. */
  readonly activateTime: number;
}

/** The changes to the set of signing keys that are due. */
export interface DueKeys {
  /** The time from which the new key must sign; undefined if no new key is due. */
  readonly create: number | undefined;
  /** The ids of the keys to delete. Their last projections have expired. */
  readonly forget: readonly string[];
}

/**
 * Returns the changes to the set of signing keys that are due.
 *
 * @param keys all keys, in the order of activation
 * @param maxAgeMs the age in milliseconds at which the service replaces a key
 */
export function dueKeys(keys: readonly JwtKeyLife[], now: number, maxAgeMs: number): DueKeys {
  const newest = keys.at(-1);
  const replaceAt = newest === undefined ? now : newest.activateTime + maxAgeMs;
  const isDue = newest === undefined || replaceAt - PUBLISHED_AHEAD_MS <= now;
  const forget = keys.filter((_, i) => {
    const successor = keys[i + 1];
    return successor !== undefined && successor.activateTime + PUBLISHED_AFTER_MS <= now;
  });
  return {
    create: isDue ? (newest === undefined ? now : Math.max(replaceAt, now + PUBLISHED_AHEAD_MS)) : undefined,
    forget: forget.map(({ kid }) => kid),
  };
}

/**
 * Returns the key that signs at the time `now`: the newest key whose activation time has come; undefined without such a
 * key.
 */
export function signingKey<Key extends JwtKeyLife>(keys: readonly Key[], now: number): Key | undefined {
  return keys.findLast(({ activateTime }) => activateTime <= now);
}
