/**
 * The cryptographic primitives of tokens (DelegateOS 1.2) behind one interface. Servers use a native engine
 * (`@depute/dct/native`), and browsers a portable engine. Both give equal answers for every input, including hostile
 * input. `selfTest` checks an engine against known answers before it is used. Every engine accepts signatures by one
 * criterion: Ed25519 (RFC 8032) without cofactor. The engine computes S * B - k * A and compares the encoding with R
 * byte for byte; S < L. Keys and R of small order are refused, and so are keys that are not in the canonical
 * encoding. Verifiers with different criteria would disagree on a token's validity.
 */
export interface CryptoEngine {
  /** The engine's name in logs, such as `sodium-native` or `noble`. */
  readonly name: string;
  /** Returns the 32-byte public key of a 32-byte seed. Throws RangeError for another length. */
  publicKey(seed: Uint8Array): Uint8Array;
  /** Returns the 64-byte signature of `message` by the key of a 32-byte seed. Throws RangeError for another length. */
  sign(message: Uint8Array, seed: Uint8Array): Uint8Array;
  /**
   * Whether `signature` is valid under the criterion that this interface states. Returns false for a malformed
   * signature. The method never throws.
   */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
  /**
   * Whether a key is a canonical encoding of a point of prime order. The check costs as much as a verification.
   * Therefore run the check once, when a principal is admitted.
   */
  isPrimeOrder(publicKey: Uint8Array): boolean;
  /** Returns the BLAKE2b hash, with 32 bytes of output and no key. */
  blake2b256(data: Uint8Array): Uint8Array;
  /** Returns an authentication code: BLAKE2b with 32 bytes of output and a key of 32 bytes. */
  mac(key: Uint8Array, data: Uint8Array): Uint8Array;
  /**
   * Returns the 32-byte shared secret of two parties: X25519 (RFC 7748) of an Ed25519 seed and the other party's
   * Ed25519 public key, both converted to the Montgomery form. Returns undefined unless the key is of prime order. The
   * secret is raw, so derive a key from it before use. Throws RangeError for a seed that does not have 32
   * bytes.
   */
  agree(seed: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
  /** Returns the SHA-256 hash, for holder proofs (RFC 9449). */
  sha256(data: Uint8Array): Uint8Array;
}
