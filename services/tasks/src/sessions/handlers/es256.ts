import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { EcKey } from "@depute/asp";

/**
 * Maximum number of cached keys. To parse a key costs about as much as a verification, so a cached key halves the
 * cost.
 */
const MAX_KEYS = 1024;
const keys = new Map<string, KeyObject>();

/** Verifies a JWS signature by ECDSA over P-256 with SHA-256. Returns false if the key is invalid. */
export function verifyEs256(signature: Uint8Array, message: Uint8Array, { x, y }: EcKey): boolean {
  try {
    const key = keyObject(x, y);
    return verify("sha256", message, { key, dsaEncoding: "ieee-p1363" }, signature);
  } catch {
    return false;
  }
}

function keyObject(x: string, y: string): KeyObject {
  const name = `${x}.${y}`;
  const publicKey = keys.get(name);
  if (publicKey !== undefined) return publicKey;
  const key = createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" });
  const [oldest] = keys.keys();
  if (keys.size >= MAX_KEYS && oldest !== undefined) keys.delete(oldest);
  keys.set(name, key);
  return key;
}
