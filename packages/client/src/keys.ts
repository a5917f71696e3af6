import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { generateKeypair, type Keypair, keypairFromSeed, portableEngine } from "@depute/dct";

/** Creates a key. Its principal is `key.principal.id`. */
export function createKey(): Keypair {
  return generateKeypair(portableEngine);
}

/**
 * Creates the key of a stored seed.
 *
 * @param seed 32 bytes, or their base64url form as {@link seedOf} returns it
 * @throws RangeError for any other seed
 */
export function keyFromSeed(seed: Uint8Array | string): Keypair {
  const bytes = typeof seed === "string" ? decodeBase64Url(seed) : seed;
  if (bytes?.length !== 32)
    throw new RangeError("a seed must have 32 bytes; pass the bytes, or their base64url text");
  return keypairFromSeed(portableEngine, bytes);
}

/** Returns the secret seed of a key in base64url, so that it can be stored. */
export function seedOf(key: Keypair): string {
  return encodeBase64Url(key.privateKey);
}
