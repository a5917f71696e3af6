import { canonicalBytes, encodeHex } from "@depute/core";

/** Minimum number of hexadecimal digits of an abbreviated hash (48 bits). */
export const MIN_HASH_DIGITS = 12;

/** Returns the content hash of a result: `sha256:` and the hexadecimal SHA-256 of its canonical JSON (NEKTE verify). */
export function resultHash(sha256: (data: Uint8Array) => Uint8Array, result: unknown): string {
  return digestOf(sha256, canonicalBytes(result));
}

/** Returns `sha256:` and the hexadecimal SHA-256 of bytes (Agenta `digest`). */
export function digestOf(sha256: (data: Uint8Array) => Uint8Array, bytes: Uint8Array): string {
  return `sha256:${encodeHex(sha256(bytes))}`;
}

/**
 * Whether a caller's hash matches a result's hash. The caller may omit the prefix `sha256:`, and may send only the
 * first digits, at least MIN_HASH_DIGITS.
 */
export function hashMatches(hash: string, sentHash: string): boolean {
  const digits = sentHash.replace(/^sha256:/i, "").toLowerCase();
  return (
    /^[0-9a-f]+$/.test(digits) &&
    digits.length >= MIN_HASH_DIGITS &&
    hash.slice("sha256:".length).startsWith(digits)
  );
}
