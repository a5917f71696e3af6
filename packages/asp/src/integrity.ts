import type { JsonObject } from "@bufbuild/protobuf";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { CanonicalError, canonicalBytes, decodeHex, encodeHex } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { encode, WireEncodeError } from "@depute/wire";

/** Separates ASP's signatures from other signatures by the same key: a signature covers this tag and then the hash. */
export const SIGNATURE_TAG = "asp/0.1\n";

const HASH = "sha256:";
const SIGNATURE = "ed25519:";
const tag = new TextEncoder().encode(SIGNATURE_TAG);

/** The hash of a message in several forms. */
export interface Digest {
  /** The 32 bytes of the hash. */
  readonly bytes: Uint8Array;
  /** The text form of the hash, as in integrity.hash. */
  readonly text: string;
  /** Number of bytes that were hashed. */
  readonly size: number;
}

/**
 * Hashes a message: SHA-256 over the RFC 8785 form of the whole document, including previousHash, but without
 * integrity.hash and integrity.signature. ASP hashes only the content. Depute hashes the whole document, so that
 * sender, performative and order cannot be altered. The numbers 50.00 and 50 are equal, so both spellings give the
 * same hash.
 *
 * @throws CanonicalError, WireEncodeError for a message that has no JSON form
 */
export function digestOf(engine: CryptoEngine, envelope: Envelope): Digest {
  const { integrity, ...rest } = encode(EnvelopeSchema, envelope) as JsonObject;
  const { hash: _hash, signature: _signature, ...integrityFields } = (integrity ?? {}) as JsonObject;
  const canonical = canonicalBytes({ ...rest, integrity: integrityFields });
  const bytes = engine.sha256(canonical);
  return { bytes, text: `${HASH}${encodeHex(bytes)}`, size: canonical.length };
}

/** Signs a hash. The signature has the form of integrity.signature. */
export function signDigest(engine: CryptoEngine, { bytes }: Digest, seed: Uint8Array): string {
  return `${SIGNATURE}${encodeHex(engine.sign(signedBytes(bytes), seed))}`;
}

/** Whether a key verifies the signature of a hash. A malformed signature gives false. */
export function verifyDigest(
  engine: CryptoEngine,
  { bytes }: Digest,
  signature: string,
  publicKey: Uint8Array,
): boolean {
  const hex = signature.startsWith(SIGNATURE) ? signature.slice(SIGNATURE.length) : "";
  const raw = decodeHex(hex);
  return raw !== undefined && raw.length === 64 && engine.verify(raw, signedBytes(bytes), publicKey);
}

/** Whether a message's hash and signature are valid. Never throws. */
export function holdsIntegrity(engine: CryptoEngine, envelope: Envelope, publicKey: Uint8Array): boolean {
  const { hash = "", signature = "" } = envelope.integrity ?? {};
  try {
    const digest = digestOf(engine, envelope);
    return digest.text === hash && verifyDigest(engine, digest, signature, publicKey);
  } catch (thrown) {
    if (thrown instanceof CanonicalError || thrown instanceof WireEncodeError) return false;
    throw thrown;
  }
}

/**
 * Fills in a message's hash and signature. `integrity.previousHash` of the message must be set.
 *
 * @param seed the 32-byte seed of the sender's Ed25519 key
 * @throws TypeError without `integrity`; CanonicalError, WireEncodeError for a message that has no JSON form
 */
export function seal(engine: CryptoEngine, envelope: Envelope, seed: Uint8Array): Envelope {
  const digest = digestOf(engine, envelope);
  const { integrity } = envelope;
  if (integrity === undefined) throw new TypeError("integrity with previousHash is required");
  return {
    ...envelope,
    integrity: { ...integrity, hash: digest.text, signature: signDigest(engine, digest, seed) },
  };
}

function signedBytes(digest: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(tag.length + digest.length);
  bytes.set(tag);
  bytes.set(digest, tag.length);
  return bytes;
}
