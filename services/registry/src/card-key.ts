import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { canonicalBytes, encodeBase64Url } from "@depute/core";
import type { CardSigner } from "./rules/agent-card.ts";
import { sha256Hex } from "./sha256.ts";

/** The key that signs agents' cards, and its public half in base64url. */
export interface CardKey extends CardSigner {
  readonly publicKey: string;
}

/**
 * The key in `card.key` of the data folder (PKCS #8, mode 0600), made when it is not there. It signs cards and nothing
 * else: what the root key signs is authority.
 *
 * @throws Error when the file is no Ed25519 key
 */
export function openCardKey(dataDir: string): CardKey {
  const file = join(dataDir, "card.key");
  const key = createPrivateKey(read(file) ?? make(file));
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`${file} is no Ed25519 key`);
  const publicKey = createPublicKey(key).export({ format: "jwk" }).x ?? "";
  const thumbprint = sha256Hex(canonicalBytes({ crv: "Ed25519", kty: "OKP", x: publicKey }));
  return {
    publicKey,
    kid: encodeBase64Url(Buffer.from(thumbprint, "hex")),
    sign: (message) => sign(null, message, key),
  };
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Makes the whole file appear at once: a crash between must not leave half a key for the next start. */
function make(file: string): string {
  const { privateKey } = generateKeyPairSync("ed25519");
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, "wx", 0o600);
  try {
    writeSync(handle, privateKey.export({ format: "pem", type: "pkcs8" }).toString());
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    linkSync(draft, file);
  } catch (error) {
    // Another process was first; its key counts.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    unlinkSync(draft);
  }
  return readFileSync(file, "utf8");
}
