import { decodeBase64Url, encodeBase64Url, randomBytes } from "@depute/core";
import { isAcceptableKey } from "./engine/encodings.ts";
import type { CryptoEngine } from "./engine.ts";
import type { Keypair, Principal } from "./types.ts";

/** Length of a principal id in characters: 32 bytes in base64url. */
const PRINCIPAL_CHARS = 43;

/** Returns a new keypair from the platform's random source. */
export function generateKeypair(engine: CryptoEngine, details: Omit<Principal, "id"> = {}): Keypair {
  return keypairFromSeed(engine, randomBytes(32), details);
}

/** Returns the keypair of a 32-byte Ed25519 seed (DelegateOS 2). Throws RangeError for another length. */
export function keypairFromSeed(
  engine: CryptoEngine,
  seed: Uint8Array,
  details: Omit<Principal, "id"> = {},
): Keypair {
  return { principal: { ...details, id: encodeBase64Url(engine.publicKey(seed)) }, privateKey: seed.slice() };
}

/** Returns the id of a 32-byte public key. */
export function principalId(publicKey: Uint8Array): string {
  return encodeBase64Url(publicKey);
}

/**
 * Parses a principal id to its public key, or returns undefined. A key has exactly one spelling: 43
 * characters, 32 bytes, encoded canonically and not of small order.
 */
export function parsePrincipal(id: unknown): Uint8Array | undefined {
  if (typeof id !== "string" || id.length !== PRINCIPAL_CHARS) return undefined;
  const key = decodeBase64Url(id);
  return key !== undefined && isAcceptableKey(key) ? key : undefined;
}

/** Whether a text is a principal id, as parsePrincipal reads it. */
export function isPrincipalId(id: unknown): id is string {
  return parsePrincipal(id) !== undefined;
}

/**
 * Whether a principal may be a trusted root, or may be registered. The key must be of prime order. Otherwise two
 * signature libraries may disagree on whether one of its signatures is valid. The check costs as much as a
 * verification, so cache the result.
 */
export function isAdmissible(engine: CryptoEngine, id: unknown): id is string {
  const key = parsePrincipal(id);
  return key !== undefined && engine.isPrimeOrder(key);
}
