import { createPublicKey, verify } from "node:crypto";

/** Verifies an Ed25519 signature with a 32-byte key. Returns false if the key is malformed. */
export function verifyEd25519(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  try {
    const x = Buffer.from(publicKey).toString("base64url");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    return verify(null, message, key, signature);
  } catch {
    return false;
  }
}
