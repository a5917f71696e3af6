import { deny } from "./denial.ts";
import type { CryptoEngine } from "./engine.ts";
import { parsePrincipal, principalId } from "./principal.ts";
import type { Keypair } from "./types.ts";

/**
 * Returns the 64-byte Ed25519 signature of a block's 32-byte digest (DelegateOS 3.3 and 3.4). Throws TokenError
 * (invalid_signature, at `path`) if the private key does not belong to the principal.
 */
export function signBlock(
  engine: CryptoEngine,
  digest: Uint8Array,
  { principal, privateKey }: Keypair,
  path: string,
): Uint8Array {
  if (principalId(engine.publicKey(privateKey)) !== principal.id) deny("invalid_signature", path);
  return engine.sign(digest, privateKey);
}

/**
 * Checks a block's signature that was made elsewhere. Throws TokenError (invalid_signature, at `path`) unless `signer`
 * signed the digest.
 */
export function assertBlockSignature(
  engine: CryptoEngine,
  digest: Uint8Array,
  signature: Uint8Array,
  signer: string,
  path: string,
): void {
  const key = parsePrincipal(signer);
  if (key === undefined || !engine.verify(signature, digest, key)) deny("invalid_signature", path);
}
