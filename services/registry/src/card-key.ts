import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import { sha256Hex } from "@depute/core/sha256";
import { openKeyFile, SettingsError } from "@depute/service";
import type { CardSigner } from "./rules/agent-card.ts";

/** The key that signs agents' cards, and its public half in base64url. */
export interface CardKey extends CardSigner {
  readonly publicKey: string;
}

/**
 * The key in `card.key` of the data folder (PKCS #8, mode 0600), made when it is not there. It signs cards and nothing
 * else: what the root key signs is authority.
 *
 * @throws SettingsError when the file is no Ed25519 key, or other users can read it
 */
export function openCardKey(dataDir: string): CardKey {
  const key = privateKey(
    openKeyFile({ dataDir, name: "card.key", danger: "whoever reads it can sign cards" }, make),
  );
  const publicKey = createPublicKey(key).export({ format: "jwk" }).x ?? "";
  return {
    publicKey,
    kid: thumbprintOf(publicKey),
    sign: (message) => sign(null, message, key),
  };
}

/** The thumbprint of an Ed25519 key in base64url. (RFC 7638) */
export function thumbprintOf(publicKey: string): string {
  const digest = sha256Hex(canonicalBytes({ crv: "Ed25519", kty: "OKP", x: publicKey }));
  return encodeBase64Url(Buffer.from(digest, "hex"));
}

function privateKey(pem: string) {
  try {
    const key = createPrivateKey(pem);
    if (key.asymmetricKeyType === "ed25519") return key;
  } catch {
    // Said below.
  }
  throw new SettingsError("card.key in the data folder is no Ed25519 key in PKCS #8");
}

function make(): string {
  const { privateKey: key } = generateKeyPairSync("ed25519");
  return key.export({ format: "pem", type: "pkcs8" }).toString();
}
