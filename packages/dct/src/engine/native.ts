import { hash } from "node:crypto";
import sodium from "sodium-native";
import type { CryptoEngine } from "../engine.ts";
import {
  assertSeed,
  isAcceptableKey,
  isAcceptableSignature,
  KEY_BYTES,
  SIGNATURE_BYTES,
} from "./encodings.ts";

// Native functions need memory outside V8's heap. A reused buffer is cheaper than a new one per call.
const passedSignature = new Uint8Array(SIGNATURE_BYTES);
const passedDigest = new Uint8Array(32);
const digest = new Uint8Array(32);

/** Engine for servers: libsodium for Ed25519 and BLAKE2b, OpenSSL for SHA-256. */
export const nativeEngine: CryptoEngine = {
  name: "sodium-native",

  publicKey(seed) {
    return expand(seed).publicKey;
  },

  sign(message, seed) {
    const { secretKey } = expand(seed);
    const signature = new Uint8Array(SIGNATURE_BYTES);
    sodium.crypto_sign_detached(signature, message, secretKey);
    sodium.sodium_memzero(secretKey);
    return signature;
  },

  verify(signature, message, publicKey) {
    // libsodium's binding accepts a signature of more than 64 bytes; `isAcceptableSignature` refuses it.
    if (!isAcceptableSignature(signature) || !isAcceptableKey(publicKey)) return false;
    passedSignature.set(signature);
    return sodium.crypto_sign_verify_detached(passedSignature, outside(message), publicKey);
  },

  isPrimeOrder(publicKey) {
    return isAcceptableKey(publicKey) && sodium.crypto_core_ed25519_is_valid_point(publicKey);
  },

  blake2b256(data) {
    sodium.crypto_generichash(digest, data);
    return digest.slice();
  },

  mac(key, data) {
    const code = new Uint8Array(32);
    sodium.crypto_generichash(code, data, key);
    return code;
  },

  agree(seed, publicKey) {
    const { secretKey } = expand(seed);
    const [ours, theirs, shared] = [new Uint8Array(32), new Uint8Array(32), new Uint8Array(32)];
    try {
      if (!nativeEngine.isPrimeOrder(publicKey)) return undefined;
      sodium.crypto_sign_ed25519_sk_to_curve25519(ours, secretKey);
      sodium.crypto_sign_ed25519_pk_to_curve25519(theirs, publicKey);
      sodium.crypto_scalarmult(shared, ours, theirs);
      return shared;
    } finally {
      sodium.sodium_memzero(secretKey);
      sodium.sodium_memzero(ours);
    }
  },

  sha256(data) {
    const text = hash("sha256", data, "binary");
    const bytes = new Uint8Array(32);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return bytes;
  },
};

/** Returns a message as a native function takes it with the least cost. Most messages are digests. */
function outside(message: Uint8Array): Uint8Array {
  if (message.length !== passedDigest.length) return message;
  passedDigest.set(message);
  return passedDigest;
}

function expand(seed: Uint8Array): { publicKey: Uint8Array; secretKey: Uint8Array } {
  assertSeed(seed);
  const publicKey = new Uint8Array(KEY_BYTES);
  const secretKey = new Uint8Array(sodium.crypto_sign_SECRETKEYBYTES);
  sodium.crypto_sign_seed_keypair(publicKey, secretKey, seed);
  return { publicKey, secretKey };
}
