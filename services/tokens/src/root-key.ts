import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { type CryptoEngine, isAdmissible, type Keypair, keypairFromSeed } from "@depute/dct";
import { type Logger, SettingsError } from "@depute/service";

const OTHERS = 0o077;

/**
 * The platform's root key: from the configured file, or from `root.key` in the data folder, which is made when it is
 * not there. The file holds the 32-byte seed in base64url.
 *
 * A configured file is never made: a mistyped path would start a platform that trusts a new root and no older token.
 *
 * @throws SettingsError when a file is missing, is no key, or the made one can be read by other users
 */
export function openRootKey(engine: CryptoEngine, where: KeyPlace): Keypair {
  const seed = openKeyFile({ ...where, name: "root.key", danger: "whoever reads it can mint tokens" });
  const keypair = keypairFromSeed(engine, seed);
  seed.fill(0);
  return keypair;
}

/**
 * The master key that kept keys are sealed with, as openRootKey finds its own: `master.key` in the data folder, or the
 * configured file.
 *
 * @throws SettingsError
 */
export function openMasterKey(where: KeyPlace): Uint8Array {
  return openKeyFile({
    ...where,
    name: "master.key",
    danger: "whoever reads it and the store has all kept keys",
  });
}

/** Where a key file is. */
export interface KeyPlace {
  dataDir: string;
  /** Empty for the file in the data folder. */
  configured: string;
  log: Logger;
}

function openKeyFile({
  dataDir,
  configured,
  log,
  name,
  danger,
}: KeyPlace & { name: string; danger: string }) {
  const file = configured === "" ? join(dataDir, name) : configured;
  if (configured === "" && !isFile(file)) createKey(file);
  const seed = readSeed(file);
  if ((statSync(file).mode & OTHERS) !== 0) {
    const message = `${file} can be read by other users; ${danger}`;
    if (configured === "") throw new SettingsError(message);
    // Secrets that an orchestrator mounts often are; their folder is what keeps others out.
    log.warn(message);
  }
  return seed;
}

/**
 * The principals whose tokens are accepted.
 *
 * @throws SettingsError for what is no key of prime order
 */
export function trustedRoots(
  engine: CryptoEngine,
  own: string,
  configured: readonly string[],
): ReadonlySet<string> {
  const wrong = configured.findIndex((root) => !isAdmissible(engine, root));
  if (wrong >= 0) {
    throw new SettingsError(
      `DEPUTE_TRUSTED_ROOTS: number ${wrong + 1} is not an Ed25519 public key in base64url`,
    );
  }
  return new Set([own, ...configured]);
}

function readSeed(file: string): Uint8Array {
  let text: string;
  try {
    text = readFileSync(file, "utf8").trim();
  } catch (cause) {
    throw new SettingsError(`the key ${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  const seed = decodeBase64Url(text);
  if (seed?.length !== 32) throw new SettingsError(`the key ${file} is not 32 bytes in base64url`);
  return seed;
}

/** Makes the whole file appear at once: a crash between must not leave half a key for the next start. */
function createKey(file: string): void {
  const draft = `${file}.${process.pid}`;
  const handle = openSync(draft, "wx", 0o600);
  try {
    const seed = crypto.getRandomValues(new Uint8Array(32));
    writeSync(handle, `${encodeBase64Url(seed)}\n`);
    fsyncSync(handle);
    seed.fill(0);
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
  syncFolder(dirname(file));
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}
