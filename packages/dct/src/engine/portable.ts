import * as ed from "@noble/ed25519";
import { sha256, sha512 } from "@noble/hashes/sha2.js";
import { blake2b } from "blakejs";
import type { CryptoEngine } from "../engine.ts";
import { assertSeed, isAcceptableKey, isAcceptableSignature } from "./encodings.ts";

// @noble/ed25519 has no synchronous SHA-512 of its own. If an implementation is already set, this statement does not
// replace it.
ed.hashes.sha512 ??= (message) => Uint8Array.from(sha512(message));

const { n: GROUP_ORDER, p: FIELD } = ed.Point.CURVE();

/**
 * Engine for browsers, without native code: @noble/ed25519 for the curve, blakejs for BLAKE2b, @noble/hashes for SHA-2.
 */
export const portableEngine: CryptoEngine = {
  name: "noble",

  publicKey(seed) {
    assertSeed(seed);
    return ed.getPublicKey(seed);
  },

  sign(message, seed) {
    assertSeed(seed);
    return ed.sign(message, seed);
  },

  // Replaces the library's own verify, which multiplies by the cofactor and accepts signatures that the
  // native engine refuses.
  verify(signature, message, publicKey) {
    if (!isAcceptableSignature(signature) || !isAcceptableKey(publicKey)) return false;
    const key = decodePoint(publicKey);
    if (key === undefined) return false;
    const r = signature.subarray(0, 32);
    const s = littleEndian(signature.subarray(32));
    const k = littleEndian(sha512(concat(r, publicKey, message))) % GROUP_ORDER;
    const expected = ed.Point.BASE.multiplyUnsafe(s).subtract(key.multiplyUnsafe(k)).toBytes();
    return expected.every((byte, i) => byte === r[i]);
  },

  isPrimeOrder(publicKey) {
    return isAcceptableKey(publicKey) && decodePoint(publicKey)?.isTorsionFree() === true;
  },

  blake2b256(data) {
    return blake2b(data, undefined, 32);
  },

  mac(key, data) {
    return blake2b(data, key, 32);
  },

  agree(seed, publicKey) {
    assertSeed(seed);
    const key = isAcceptableKey(publicKey) ? decodePoint(publicKey) : undefined;
    if (key?.isTorsionFree() !== true) return undefined;
    const scalar = sha512(seed).subarray(0, 32);
    // Clears and sets bits of the scalar, as RFC 8032 5.1.5 and RFC 7748 5 require.
    scalar[0] = (scalar[0] as number) & 248;
    scalar[31] = ((scalar[31] as number) & 127) | 64;
    const { y } = key.multiply(littleEndian(scalar) % GROUP_ORDER).toAffine();
    const u = ((1n + y) * ed.etc.invert(ed.etc.mod(1n - y, FIELD), FIELD)) % FIELD;
    return ed.etc.hexToBytes(u.toString(16).padStart(64, "0")).reverse();
  },

  sha256,
};

function decodePoint(encoding: Uint8Array): ed.Point | undefined {
  try {
    return ed.Point.fromBytes(encoding);
  } catch {
    return undefined; // Not on the curve.
  }
}

function littleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${ed.etc.bytesToHex(Uint8Array.from(bytes).reverse())}`);
}

function concat(...parts: Uint8Array[]): Uint8Array {
  return ed.etc.concatBytes(...parts);
}
