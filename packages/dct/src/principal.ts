import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { isAcceptableKey } from "./engine/encodings.ts";
import type { CryptoEngine } from "./engine.ts";
import type { Keypair, Principal } from "./types.ts";

/** Characters of a principal id: 32 bytes in base64url. */
const PRINCIPAL_CHARS = 43;

/** A new keypair from the platform's random source. */
export function generateKeypair(engine: CryptoEngine, about: Omit<Principal, "id"> = {}): Keypair {
  return keypairFromSeed(engine, crypto.getRandomValues(new Uint8Array(32)), about);
}

/** The keypair of a 32-byte Ed25519 seed (DelegateOS 2). Throws RangeError for another length. */
export function keypairFromSeed(
  engine: CryptoEngine,
  seed: Uint8Array,
  about: Omit<Principal, "id"> = {},
): Keypair {
  return { principal: { ...about, id: encodeBase64Url(engine.publicKey(seed)) }, privateKey: seed.slice() };
}

/** The id of a 32-byte public key. */
export function principalId(publicKey: Uint8Array): string {
  return encodeBase64Url(publicKey);
}

/**
 * The public key of a principal id, or undefined: exactly one spelling a key, 43 characters, 32 bytes, encoded
 * canonically and not of small order.
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
 * Whether a principal may be admitted (as a trusted root, or registered): its key is of prime order, so that nobody
 * can have made it such that some of its signatures hold under one verifier and not another. Costs as much as a
 * verification; ask once and remember.
 */
export function isAdmissible(engine: CryptoEngine, id: unknown): id is string {
  const key = parsePrincipal(id);
  return key !== undefined && engine.isPrimeOrder(key);
}
