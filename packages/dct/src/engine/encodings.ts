/** Length of a public key and of a seed, in bytes. SIGNATURE_BYTES is the length of a signature. */
export const KEY_BYTES = 32;
export const SIGNATURE_BYTES = 64;

/**
 * Every encoding of the eight points of small order. The list has the canonical encodings, and encodings with y
 * + p in place of y. For x = 0, the list also has encodings with the sign bit set. With such a key or R, one
 * signature is valid for many messages or keys.
 */
const SMALL_ORDER = [
  "0000000000000000000000000000000000000000000000000000000000000000",
  "0000000000000000000000000000000000000000000000000000000000000080",
  "0100000000000000000000000000000000000000000000000000000000000000",
  "0100000000000000000000000000000000000000000000000000000000000080",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
  "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
  "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
].map(fromHex);

/** The group order L, little-endian. */
const GROUP_ORDER = fromHex("edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010");

/**
 * For each value of a first byte, 1 if an encoding in SMALL_ORDER begins with that byte. One look-up therefore rejects
 * most other encodings.
 */
const MAY_BE_SMALL = new Uint8Array(256);
for (const [first] of SMALL_ORDER) MAY_BE_SMALL[first as number] = 1;

/** Whether 32 bytes are one of the encodings in SMALL_ORDER. */
export function isSmallOrder(encoding: Uint8Array): boolean {
  if (MAY_BE_SMALL[encoding[0] ?? 0] === 0) return false;
  for (const bad of SMALL_ORDER) if (beginsWith(encoding, bad)) return true;
  return false;
}

function beginsWith(bytes: Uint8Array, first: Uint8Array): boolean {
  for (let i = 0; i < first.length; i++) if (bytes[i] !== first[i]) return false;
  return true;
}

/** Whether the y of a 32-byte encoding is below p = 2^255 - 19. */
export function hasCanonicalY(encoding: Uint8Array): boolean {
  if (((encoding[31] ?? 0) & 0x7f) !== 0x7f) return true;
  for (let i = 30; i > 0; i--) if (encoding[i] !== 0xff) return true;
  return (encoding[0] ?? 0) < 0xed;
}

/** Whether the second half of a 64-byte signature, little-endian, is below L. */
export function hasCanonicalS(signature: Uint8Array): boolean {
  for (let i = KEY_BYTES - 1; i >= 0; i--) {
    const s = signature[KEY_BYTES + i] ?? 0;
    const limit = GROUP_ORDER[i] ?? 0;
    if (s !== limit) return s < limit;
  }
  return false;
}

/** Whether both engines accept a public key's encoding: 32 bytes, canonical y, not of small order. */
export function isAcceptableKey(publicKey: Uint8Array): boolean {
  return publicKey.length === KEY_BYTES && hasCanonicalY(publicKey) && !isSmallOrder(publicKey);
}

/**
 * Whether a signature has an acceptable encoding: 64 bytes, S below L, R not of small order. Both engines make
 * this check first.
 */
export function isAcceptableSignature(signature: Uint8Array): boolean {
  return signature.length === SIGNATURE_BYTES && hasCanonicalS(signature) && !isSmallOrder(signature);
}

/** Throws RangeError unless `seed` has the 32 bytes of an Ed25519 seed. */
export function assertSeed(seed: Uint8Array): void {
  if (seed.length !== KEY_BYTES)
    throw new RangeError(`an Ed25519 seed has ${KEY_BYTES} bytes, not ${seed.length}`);
}

/** Returns the bytes of a hexadecimal constant in this package. */
export function fromHex(hex: string): Uint8Array {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}
