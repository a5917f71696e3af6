import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { type KeySource, SettingsError } from "@depute/service";
import type { CardSigner } from "./rules/agent-card.ts";

/** The key that signs agents' cards, and its public half in base64url. */
export interface CardKey extends CardSigner {
  readonly publicKey: string;
}

/**
 * Opens the platform's key `card` (PKCS #8), or makes the key if it does not exist. This key only signs cards. The
 * root key does not sign cards, because signatures of the root key grant authority.
 *
 * @throws SettingsError if `card.key` is not an Ed25519 key, or if other users can read that file
 */
export async function openCardKey(keys: KeySource): Promise<CardKey> {
  const key = privateKey(await keys.open({ name: "card.key", danger: "its readers can sign cards" }, make));
  const publicKey = createPublicKey(key).export({ format: "jwk" }).x ?? "";
  return {
    publicKey,
    kid: thumbprintOf(publicKey),
    sign: (message) => sign(null, message, key),
  };
}

/** Returns the thumbprint of an Ed25519 key in base64url. (RFC 7638) */
export function thumbprintOf(publicKey: string): string {
  const digest = sha256Hex(canonicalBytes({ crv: "Ed25519", kty: "OKP", x: publicKey }));
  return encodeBase64Url(Buffer.from(digest, "hex"));
}

function privateKey(pem: string) {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // If the text is not a key, the statement below throws the error.
  }
  throw new SettingsError("card.key must be an Ed25519 key in PKCS #8");
}

function make(): string {
  const { privateKey: key } = generateKeyPairSync("ed25519");
  return key.export({ format: "pem", type: "pkcs8" }).toString();
}
