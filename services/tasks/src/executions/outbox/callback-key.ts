import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { type KeySource, SettingsError } from "@depute/service";

/** The key that signs callbacks. */
export interface CallbackKey {
  /** The public key in base64url. */
  readonly publicKey: string;
  /** The thumbprint of the key. (RFC 7638) */
  readonly keyId: string;
  sign(text: string): Uint8Array;
}

/**
 * Opens the platform's key `callback` (PKCS #8), or creates the key if it does not exist. The key signs only callbacks.
 *
 * @throws SettingsError with the causes of {@link KeySource.open}, and for a key that is not an Ed25519 key
 */
export async function openCallbackKey(keys: KeySource): Promise<CallbackKey> {
  const danger = "its readers can send receipts in the platform's name";
  const key = privateKey(await keys.open({ name: "callback.key", danger }, make));
  const publicKey = createPublicKey(key).export({ format: "jwk" }).x ?? "";
  const thumbprint = sha256Hex(canonicalBytes({ crv: "Ed25519", kty: "OKP", x: publicKey }));
  return {
    publicKey,
    keyId: encodeBase64Url(Buffer.from(thumbprint, "hex")),
    sign: (text) => sign(null, Buffer.from(text), key),
  };
}

function privateKey(pem: string): KeyObject {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // The text is not a private key. The error below reports this.
  }
  throw new SettingsError("the callback key is not an Ed25519 key in PKCS #8");
}

function make(): string {
  const { privateKey: key } = generateKeyPairSync("ed25519");
  return key.export({ format: "pem", type: "pkcs8" }).toString();
}
