import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { canonicalBytes, decodeBase64Url, encodeBase64Url } from "@depute/core";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Facts that a sealed secret belongs to: it opens with exactly these. */
export type SecretContext = Readonly<Record<string, string>>;

/** Seals secrets with the platform's master key: AES-256-GCM under a new nonce, bound to what they belong to. */
export class SealedSecrets {
  readonly #master: Uint8Array;

  /** @param master 32 bytes */
  constructor(master: Uint8Array) {
    this.#master = master;
  }

  /** base64url of nonce, ciphertext and tag. */
  seal(secret: Uint8Array, context: SecretContext): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#master, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(canonicalBytes(context));
    return encodeBase64Url(
      Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]),
    );
  }

  /** The secret; undefined when it was sealed with another key or for something else, or was changed. */
  open(sealed: string, context: SecretContext): Uint8Array | undefined {
    const bytes = decodeBase64Url(sealed);
    if (bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#master, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(canonicalBytes(context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      // No Buffer: its slice would share the memory, and whoever wipes one would wipe the other.
      return new Uint8Array(Buffer.concat(opened));
    } catch {
      return undefined;
    }
  }

  close(): void {
    this.#master.fill(0);
  }
}
