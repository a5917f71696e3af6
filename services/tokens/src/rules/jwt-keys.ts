/** Maximum lifetime of a projected token, in milliseconds. */
export const MAX_PROJECTION_MS = 300_000;
/** How long a key is published before it signs, so that resource servers have read it. In milliseconds. */
export const PUBLISHED_AHEAD_MS = 3_600_000;
/** Milliseconds for which a replaced key stays published: the lifetime of its last token, and some clock skew. */
export const PUBLISHED_AFTER_MS = MAX_PROJECTION_MS + 300_000;

/** The life of a signing key. Times are milliseconds since 1970. */
export interface JwtKeyLife {
  readonly kid: string;
  /** The time from which the key signs. */
  readonly activateTime: number;
}

/** The due changes of the set of signing keys. */
export interface DueKeys {
  /** The time from which a new key signs; undefined if no key is due. */
  readonly create: number | undefined;
  /** Keys with which no valid token is signed any more. */
  readonly forget: readonly string[];
}

/**
 * Returns the due changes of the set of signing keys.
 *
 * @param keys all keys, in the order of activation
 * @param maxAgeMs the time after which a key is replaced
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

/** Returns the key that signs now: the newest active one. */
export function signingKey<Key extends JwtKeyLife>(keys: readonly Key[], now: number): Key | undefined {
  return keys.findLast(({ activateTime }) => activateTime <= now);
}
