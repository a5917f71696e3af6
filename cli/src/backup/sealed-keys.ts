import {
  createCipheriv,
  createDecipheriv,
  createPrivateKey,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
  scryptSync,
} from "node:crypto";
import { decodeBase64Url, encodeBase64Url } from "@depute/core";

/** The name of the file with the sealed keys in a backup. */
export const SEALED_KEYS = "keys.sealed";

/** The name of the file's format. A format with another key derivation or cipher must have another name. */
const FORMAT = "depute-sealed-keys-v1";

/**
 * The cost of one guess of a passphrase: 128 MiB of memory (RFC 7914; OWASP's recommendation of 2026). The parameters
 * are part of the format, so a file with other parameters is refused.
 */
export const SCRYPT = { N: 131_072, r: 8, p: 1 } as const;

/** Maximum memory, in bytes, that scrypt may use. One run of scrypt needs 128 * N * r bytes. */
const SCRYPT_MEMORY = 160 * 1024 * 1024;
const SALT_BYTES = 16;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;
const CIPHER = "aes-256-gcm";

/** Minimum and maximum length of a passphrase in characters. */
export const MIN_PASSPHRASE = 12;
const MAX_PASSPHRASE = 1024;
/** Maximum size of the file with the sealed keys, in bytes. A platform has about ten keys of 44 bytes. */
export const MAX_SEALED_BYTES = 256 * 1024;

/** A key file of the platform. */
export interface KeyContent {
  readonly name: string;
  readonly content: Uint8Array;
}

/** The means to seal the keys: a passphrase, or a recipient's public X25519 key. */
export type Sealer = { readonly passphrase: string } | { readonly recipient: KeyObject };

/** The means to open the keys: the passphrase, or the recipient's private key. */
export type Opener = { readonly passphrase: string } | { readonly identity: KeyObject };

/** The head of the file. The cipher authenticates it, so a changed head is detected. */
type Head = { readonly format: string; readonly nonce: string } & (
  | {
      readonly kdf: "scrypt";
      readonly salt: string;
      readonly N: number;
      readonly r: number;
      readonly p: number;
    }
  | { readonly kdf: "x25519-hkdf-sha256"; readonly ephemeral: string }
);

/** A fault of the sealed file or of the secret. The operator can correct it. */
export class SealedKeysError extends Error {}

/**
 * Seals key files. Only the holder of the passphrase, or of the recipient's private key, can read them. {@link
 * openKeys} refuses a sealed text that was changed in any part.
 */
export function sealKeys(keys: readonly KeyContent[], sealer: Sealer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const common = { format: FORMAT, nonce: encodeBase64Url(nonce) };
  let head: Head;
  let key: Uint8Array;
  if ("passphrase" in sealer) {
    const salt = randomBytes(SALT_BYTES);
    head = { ...common, kdf: "scrypt", ...SCRYPT, salt: encodeBase64Url(salt) };
    key = keyOfPassphrase(sealer.passphrase, salt);
  } else {
    const { publicKey, privateKey } = generateKeyPairSync("x25519");
    const ephemeral = rawOf(publicKey);
    head = { ...common, kdf: "x25519-hkdf-sha256", ephemeral: encodeBase64Url(ephemeral) };
    const shared = diffieHellman({ privateKey, publicKey: sealer.recipient });
    key = keyOfShared(shared, ephemeral, rawOf(sealer.recipient));
  }
  const cipher = createCipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(JSON.stringify(head)));
  const files = keys.map(({ name, content }) => ({ name, content: encodeBase64Url(content) }));
  const sealed = Buffer.concat([cipher.update(JSON.stringify(files)), cipher.final(), cipher.getAuthTag()]);
  return `${JSON.stringify({ head: JSON.stringify(head), sealed: encodeBase64Url(sealed) })}\n`;
}

/**
 * Opens sealed key files.
 *
 * @throws SealedKeysError if the secret is wrong, or the file was cut or changed
 */
export function openKeys(text: string, opener: Opener): readonly KeyContent[] {
  const { head, headText, sealed } = parse(text);
  const nonce = bytesOf(head.nonce, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, keyFor(head, opener), nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(headText));
  decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES));
  let opened: string;
  try {
    const content = decipher.update(sealed.subarray(0, sealed.length - TAG_BYTES));
    opened = Buffer.concat([content, decipher.final()]).toString("utf8");
  } catch (cause) {
    const what = "passphrase" in opener ? "passphrase" : "identity";
    throw new SealedKeysError(
      `the ${what} does not open it, or it was changed; use the ${what} of the backup`,
      {
        cause,
      },
    );
  }
  return (JSON.parse(opened) as { name: string; content: string }[]).map(({ name, content }) => ({
    name,
    content: decodeBase64Url(content) ?? new Uint8Array(),
  }));
}

/**
 * Returns the passphrase in a file's text, which is the first line.
 *
 * @throws SealedKeysError if the passphrase is too short or too long
 */
export function passphraseOf(text: string): string {
  const [passphrase = ""] = text.split(/\r?\n/);
  const { length } = [...passphrase];
  if (length < MIN_PASSPHRASE || length > MAX_PASSPHRASE)
    throw new SealedKeysError(
      `the passphrase has ${length} characters; it needs ${MIN_PASSPHRASE} to ${MAX_PASSPHRASE}, on the first line`,
    );
  // Keyboards and editors encode the same letter in different ways, so the text is normalized (RFC 8265).
  return passphrase.normalize("NFC");
}

/**
 * Reads the public key of a recipient.
 *
 * @throws SealedKeysError if the PEM text has no X25519 public key
 */
export function recipientOf(pem: string): KeyObject {
  return x25519(
    () => createPublicKey(pem),
    "a PEM file with an X25519 public key, as of `openssl pkey -pubout`",
  );
}

/**
 * Reads the private key of a recipient.
 *
 * @throws SealedKeysError if the PEM text has no X25519 private key
 */
export function identityOf(pem: string): KeyObject {
  return x25519(
    () => createPrivateKey(pem),
    "a PEM file with an X25519 private key, as of `openssl genpkey -algorithm X25519`",
  );
}

function x25519(read: () => KeyObject, needed: string): KeyObject {
  let key: KeyObject | undefined;
  try {
    key = read();
  } catch {
    // The error below says which file is needed. It does not quote the cause, which may contain text of the file.
  }
  if (key?.asymmetricKeyType !== "x25519") throw new SealedKeysError(`it is not ${needed}`);
  return key;
}

function parse(text: string): { head: Head; headText: string; sealed: Uint8Array } {
  try {
    const { head: headText, sealed } = JSON.parse(text) as { head: string; sealed: string };
    const head = JSON.parse(headText) as Head;
    const bytes = decodeBase64Url(sealed);
    if (bytes !== undefined && bytes.length > TAG_BYTES && head.format === FORMAT)
      return { head, headText, sealed: bytes };
  } catch {
    // The error below reports the malformed text.
  }
  throw new SealedKeysError(
    `it is not a complete file of the format ${FORMAT}; use another copy of the backup`,
  );
}

function keyFor(head: Head, opener: Opener): Uint8Array {
  if (head.kdf === "scrypt") {
    if (!("passphrase" in opener))
      throw new SealedKeysError(
        "the keys are sealed with a passphrase; name its file with --keys-passphrase-file",
      );
    if (head.N !== SCRYPT.N || head.r !== SCRYPT.r || head.p !== SCRYPT.p)
      throw new SealedKeysError(`its parameters of scrypt are not those of ${FORMAT}`);
    return keyOfPassphrase(opener.passphrase, bytesOf(head.salt, SALT_BYTES));
  }
  if (!("identity" in opener))
    throw new SealedKeysError(
      "the keys are sealed for a recipient; name the file of its private key with --keys-identity-file",
    );
  const { identity } = opener;
  const ephemeral = bytesOf(head.ephemeral, KEY_BYTES);
  return keyOfShared(sharedWith(ephemeral, identity), ephemeral, rawOf(createPublicKey(identity)));
}

function sharedWith(ephemeral: Uint8Array, identity: KeyObject): Uint8Array {
  const jwk = { kty: "OKP", crv: "X25519", x: encodeBase64Url(ephemeral) };
  try {
    const publicKey = createPublicKey({ key: jwk, format: "jwk" });
    return diffieHellman({ privateKey: identity, publicKey });
  } catch (cause) {
    throw new SealedKeysError("its head has no usable key; use another copy of the backup", { cause });
  }
}

function keyOfPassphrase(passphrase: string, salt: Uint8Array): Uint8Array {
  return scryptSync(passphrase, salt, KEY_BYTES, { ...SCRYPT, maxmem: SCRYPT_MEMORY });
}

/** Derives the key from a shared secret with HKDF-SHA256 (RFC 5869). The derivation includes both public keys. */
function keyOfShared(shared: Uint8Array, ephemeral: Uint8Array, recipient: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", shared, Buffer.concat([ephemeral, recipient]), FORMAT, KEY_BYTES));
}

/** Returns the 32 bytes of an X25519 public key. */
function rawOf(key: KeyObject): Uint8Array {
  return Buffer.from(key.export({ format: "jwk" }).x ?? "", "base64url");
}

function bytesOf(text: unknown, length: number): Uint8Array {
  const bytes = typeof text === "string" ? decodeBase64Url(text) : undefined;
  if (bytes?.length === length) return bytes;
  throw new SealedKeysError(`its head does not have the format ${FORMAT}; use another copy of the backup`);
}
