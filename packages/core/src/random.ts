/** Returns a random number from 0 up to but not including 1. */
export type Random = () => number;

/**
 * A random source for spreading load. Its numbers are predictable. Secrets and identifiers must use `randomBytes`
 * instead.
 */
export const systemRandom: Random = Math.random;

/** Returns random bytes that cannot be guessed. */
export function randomBytes(length: number): Uint8Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint8Array(length));
}

/** Returns random 32-bit numbers that cannot be guessed. */
export function randomWords(length: number): Uint32Array<ArrayBuffer> {
  return crypto.getRandomValues(new Uint32Array(length));
}

/** Returns a UUIDv4, with 122 random bits that cannot be guessed. */
export function randomUuid(): string {
  return crypto.randomUUID();
}
