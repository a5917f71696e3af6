import { createPublicKey, type KeyObject, verify } from "node:crypto";
import type { EcKey } from "@depute/asp";

/** Keys that are at hand: parsing one costs about as much as a verification. */
const MAX_KEYS = 1024;
const keys = new Map<string, KeyObject>();

/** Whether a signature in the form of JWS is one of ECDSA over P-256 with SHA-256; false for what is no key. */
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
  const known = keys.get(name);
  if (known !== undefined) return known;
  const key = createPublicKey({ key: { kty: "EC", crv: "P-256", x, y }, format: "jwk" });
  const [oldest] = keys.keys();
  if (keys.size >= MAX_KEYS && oldest !== undefined) keys.delete(oldest);
  keys.set(name, key);
  return key;
}
