/** The functions of sodium-native that the native engine calls; the package has no types. */
declare module "sodium-native" {
  const sodium: {
    readonly crypto_sign_SECRETKEYBYTES: number;
    crypto_sign_seed_keypair(publicKey: Uint8Array, secretKey: Uint8Array, seed: Uint8Array): void;
    crypto_sign_detached(signature: Uint8Array, message: Uint8Array, secretKey: Uint8Array): void;
    crypto_sign_verify_detached(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean;
    crypto_core_ed25519_is_valid_point(point: Uint8Array): boolean;
    crypto_generichash(digest: Uint8Array, data: Uint8Array, key?: Uint8Array): void;
    crypto_sign_ed25519_pk_to_curve25519(x25519: Uint8Array, ed25519: Uint8Array): void;
    crypto_sign_ed25519_sk_to_curve25519(x25519: Uint8Array, ed25519: Uint8Array): void;
    crypto_scalarmult(shared: Uint8Array, secretKey: Uint8Array, publicKey: Uint8Array): void;
    sodium_memzero(secret: Uint8Array): void;
  };
  export default sodium;
}
