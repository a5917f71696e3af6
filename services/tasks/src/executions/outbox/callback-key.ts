import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { openKeyFile, SettingsError } from "@depute/service";

/** The key that signs callbacks. */
export interface CallbackKey {
  /** Its public half in base64url. */
  readonly publicKey: string;
  /** Its thumbprint. (RFC 7638) */
  readonly keyId: string;
  sign(text: string): Uint8Array;
}

/**
 * The key in `callback.key` of the data folder (PKCS #8, mode 0600), made when it is not there. It signs callbacks and nothing
 * else.
 *
 * @throws SettingsError when the file is no Ed25519 key, or other users can read it
 */
export function openCallbackKey(dataDir: string): CallbackKey {
  const danger = "whoever reads it can send receipts in the platform's name";
  const key = privateKey(openKeyFile({ dataDir, name: "callback.key", danger }, make));
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
    // Said below.
  }
  throw new SettingsError("callback.key in the data folder is no Ed25519 key in PKCS #8");
}

function make(): string {
  const { privateKey: key } = generateKeyPairSync("ed25519");
  return key.export({ format: "pem", type: "pkcs8" }).toString();
}
