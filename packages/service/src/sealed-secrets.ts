import { createCipheriv, createDecipheriv, createHmac, randomBytes } from "node:crypto";
import { canonicalBytes, decodeBase64Url, encodeBase64Url } from "@depute/core";

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The data to which a sealed secret is bound, such as its row's id. The secret opens only with the same data. */
export type SecretContext = Readonly<Record<string, string>>;

/**
 * Seals secrets with one key, such as the platform's master key. The cipher is AES-256-GCM with a fresh nonce, bound to
 * the secret's context.
 */
export class SealedSecrets {
  readonly #master: Uint8Array;

  /** @param master 32 bytes */
  constructor(master: Uint8Array) {
    this.#master = master;
  }

  /** Returns an instance with a random key that only this process has. */
  static ofProcess(): SealedSecrets {
    return new SealedSecrets(randomBytes(32));
  }

  /** Seals a secret. Returns the nonce, the ciphertext and the tag in base64url. */
  seal(secret: Uint8Array, context: SecretContext): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(ALGORITHM, this.#master, nonce, { authTagLength: TAG_BYTES });
    cipher.setAAD(canonicalBytes(context));
    return encodeBase64Url(
      Buffer.concat([nonce, cipher.update(secret), cipher.final(), cipher.getAuthTag()]),
    );
  }

  /** Opens a sealed secret. Returns undefined if it was sealed with another key or context, or was changed. */
  open(sealed: string, context: SecretContext): Uint8Array | undefined {
    const bytes = decodeBase64Url(sealed);
    if (bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, this.#master, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(canonicalBytes(context));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    try {
      const opened = [decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      // The result is a copy in memory of its own. A small Buffer is a slice of memory that it shares with other
      // Buffers.
      return new Uint8Array(Buffer.concat(opened));
    } catch {
      return undefined;
    }
  }

  close(): void {
    this.#master.fill(0);
  }
}

/** Returns a fingerprint that distinguishes secret keys and does not reveal them. */
export function fingerprintOf(secret: Uint8Array): string {
  return createHmac("sha256", secret).update("depute key fingerprint").digest("hex").slice(0, 32);
}
