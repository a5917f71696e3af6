import type { JsonObject } from "@bufbuild/protobuf";
import { type Envelope, EnvelopeSchema } from "@depute/contracts/asp/v0/envelope_pb";
import { CanonicalError, canonicalBytes, decodeHex, encodeHex } from "@depute/core";
import type { CryptoEngine } from "@depute/dct";
import { encode, WireEncodeError } from "@depute/wire";

/** What a signature covers before the hash, so that a signature made for something else is none. */
export const SIGNATURE_TAG = "asp/0.1\n";

const HASH = "sha256:";
const SIGNATURE = "ed25519:";
const tag = new TextEncoder().encode(SIGNATURE_TAG);

/** The hash of a message. */
export interface Digest {
  /** The 32 bytes. */
  readonly bytes: Uint8Array;
  /** As integrity.hash has it. */
  readonly text: string;
  /** Bytes of what was hashed. */
  readonly size: number;
}

/**
 * The hash of a message: SHA-256 over the RFC 8785 form of the whole document without integrity.hash and
 * integrity.signature; previousHash stays in. The pages say that the content is hashed; Depute hashes all of it, because
 * else sender, performative or order could be altered. 50.00 and 50 are one number and hash alike.
 *
 * @throws CanonicalError, WireEncodeError for a message that has no JSON form
 */
export function digestOf(engine: CryptoEngine, envelope: Envelope): Digest {
  const { integrity, ...rest } = encode(EnvelopeSchema, envelope) as JsonObject;
  const { hash: _hash, signature: _signature, ...kept } = (integrity ?? {}) as JsonObject;
  const canonical = canonicalBytes({ ...rest, integrity: kept });
  const bytes = engine.sha256(canonical);
  return { bytes, text: `${HASH}${encodeHex(bytes)}`, size: canonical.length };
}

/** The signature of a hash, as integrity.signature has it. */
export function signDigest(engine: CryptoEngine, { bytes }: Digest, seed: Uint8Array): string {
  return `${SIGNATURE}${encodeHex(engine.sign(signedBytes(bytes), seed))}`;
}

/** Whether a signature is that of a hash by a key. False for whatever is no signature. */
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

/** Whether a message has the hash and the signature that it should have. Throws nothing. */
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
 * The message with its hash and signature filled in; previousHash is what it already states.
 *
 * @param seed the 32-byte seed of the sender's Ed25519 key
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
