/**
 * The primitives that tokens rest on (DelegateOS 1.2), behind one interface: a native engine on a server
 * (`@depute/dct/native`), a portable one in a browser. Both answer alike for every input, hostile ones among them,
 * and prove it with `selfTest` before they are used.
 *
 * One criterion for a signature is normative: Ed25519 (RFC 8032) without cofactor. S * B - k * A is computed and its
 * encoding compared with R byte for byte; S < L; keys and R of small order, and keys that are not encoded
 * canonically, are refused. Two verifiers with different criteria would disagree on whether a token is valid.
 */
export interface CryptoEngine {
  /** Name for logs, as `sodium-native` or `noble`. */
  readonly name: string;
  /** The 32-byte public key of a 32-byte seed. Throws RangeError for another length. */
  publicKey(seed: Uint8Array): Uint8Array;
  /** The 64-byte signature of `message` by the key of a 32-byte seed. Throws RangeError for another length. */
  sign(message: Uint8Array, seed: Uint8Array): Uint8Array;
  /** Whether `signature` is valid under the criterion above. False, never an exception, for whatever is no signature. */
  verify(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
  /**
   * Whether a key is a canonical encoding of a point of prime order. Costs as much as a verification: meant for the
   * admission of a principal, once.
   */
  isPrimeOrder(publicKey: Uint8Array): boolean;
  /** BLAKE2b with 32 bytes of output, no key. */
  blake2b256(data: Uint8Array): Uint8Array;
  /** BLAKE2b with 32 bytes of output and a key of 32 bytes: a code that only who has the key can make. */
  mac(key: Uint8Array, data: Uint8Array): Uint8Array;
  /**
   * The 32 bytes that two parties have in common: X25519 (RFC 7748) of an Ed25519 seed and of the other's Ed25519 public
   * key, both taken over to the other form of the curve. undefined unless the key is of prime order. Raw: a key is to be
   * derived from it. Throws RangeError for a seed of another length.
   */
  agree(seed: Uint8Array, publicKey: Uint8Array): Uint8Array | undefined;
  /** SHA-256, for holder proofs (RFC 9449). */
  sha256(data: Uint8Array): Uint8Array;
}
