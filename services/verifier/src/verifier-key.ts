import {
  chmodSync,
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { type CryptoEngine, type Keypair, keypairFromSeed } from "@depute/dct";

/** The verifier's key cannot be used; the message says what to do. */
export class VerifierKeyError extends Error {
  override readonly name = "VerifierKeyError";
}

const SEED_BYTES = 32;

/**
 * The verifier's own keypair: a file with the 32-byte Ed25519 seed in base64url. Without a configured file it is
 * `verifier.key` in the data folder, made at the first start for its owner only. A configured file has to be there:
 * a new identity must not appear because a secret was not mounted.
 *
 * @throws VerifierKeyError for a missing, unreadable or damaged file, or one that others may read
 */
export function loadVerifierKey(engine: CryptoEngine, dataDir: string, configured: string): Keypair {
  const file = configured === "" ? join(dataDir, "verifier.key") : configured;
  const text = read(file) ?? (configured === "" ? makeKey(file) : undefined);
  if (text === undefined) throw new VerifierKeyError(`the verifier's key ${file} is missing`);
  const seed = decodeBase64Url(text.trim());
  if (seed?.length !== SEED_BYTES) {
    throw new VerifierKeyError(`${file} does not hold a key: ${SEED_BYTES} bytes in base64url are needed`);
  }
  return keypairFromSeed(engine, seed, { name: "verifier" });
}

function read(file: string): string | undefined {
  try {
    const mode = statSync(file).mode & 0o077;
    if (mode !== 0 && process.platform !== "win32") {
      throw new VerifierKeyError(`others than its owner have access to ${file}: chmod 600 it`);
    }
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    if (error instanceof VerifierKeyError) throw error;
    throw new VerifierKeyError(`the verifier's key ${file} cannot be read`, { cause: error });
  }
}

/** Writes a new key whole or not at all; when another process was first, its key is taken. */
function makeKey(file: string): string {
  const draft = `${file}.${process.pid}.new`;
  const text = `${encodeBase64Url(crypto.getRandomValues(new Uint8Array(SEED_BYTES)))}\n`;
  try {
    const handle = openSync(draft, "w", 0o600);
    try {
      writeSync(handle, text);
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    chmodSync(draft, 0o600);
    try {
      linkSync(draft, file);
    } finally {
      unlinkSync(draft);
    }
    return text;
  } catch (error) {
    const made = (error as NodeJS.ErrnoException).code === "EEXIST" ? read(file) : undefined;
    if (made !== undefined) return made;
    throw new VerifierKeyError(`no key could be written to ${file}`, { cause: error });
  }
}
