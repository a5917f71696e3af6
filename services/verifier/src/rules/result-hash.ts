import { canonicalBytes, encodeHex } from "@depute/core";

/** Fewest digits of a hash that are compared: 48 bits. */
export const MIN_HASH_DIGITS = 12;

/** The content hash of a result: `sha256:` and the hexadecimal SHA-256 of its canonical JSON (NEKTE verify). */
export function resultHash(sha256: (data: Uint8Array) => Uint8Array, result: unknown): string {
  return digestOf(sha256, canonicalBytes(result));
}

/** `sha256:` and the hexadecimal SHA-256 of bytes (Agenta `digest`). */
export function digestOf(sha256: (data: Uint8Array) => Uint8Array, bytes: Uint8Array): string {
  return `sha256:${encodeHex(sha256(bytes))}`;
}

/** Whether a hash, with or without `sha256:`, in full or its first digits, is that of a result. */
export function hashMatches(hash: string, given: string): boolean {
  const digits = given.replace(/^sha256:/i, "").toLowerCase();
  return (
    /^[0-9a-f]+$/.test(digits) &&
    digits.length >= MIN_HASH_DIGITS &&
    hash.slice("sha256:".length).startsWith(digits)
  );
}
