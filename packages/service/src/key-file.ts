import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { decodeBase64Url, encodeBase64Url } from "@depute/core";
import { SettingsError } from "./settings.ts";

const OTHERS = 0o077;
/** Number of bytes of a seed. */
export const SEED_BYTES = 32;

/** Returns the text of a new random seed. */
export function newSeed(): string {
  return `${encodeBase64Url(crypto.getRandomValues(new Uint8Array(SEED_BYTES)))}\n`;
}

/** The location of a key's file. */
export interface KeyFile {
  readonly dataDir: string;
  /** Name of the key's file in the data folder. A missing file is created. */
  readonly name: string;
  /** Path of a configured file outside the data folder; absent or empty for the file in the data folder. */
  readonly configured?: string;
  /**
   * The harm if other users can read the file, as a clause for errors and warnings, e.g. `its readers can open all
   * sealed keys`.
   */
  readonly danger: string;
  /**
   * Receives a warning if other users can read a configured file. Orchestrators often mount secrets as such files, and
   * protect their folder instead. If this listener is absent, the file is refused.
   */
  readonly warn?: (message: string) => void;
}

/**
 * Reads a key file that only its owner may read (mode 0600). Creates the file if it is the default file and is missing.
 * A configured file is never created: a mistyped path would start a service with a new identity.
 *
 * @param make returns the text of a new key
 * @throws SettingsError when the file is missing, cannot be read or written, or can be read by other users
 */
export function openKeyFile(
  { dataDir, name, configured = "", danger, warn }: KeyFile,
  make: () => string,
): string {
  const file = configured === "" ? join(dataDir, name) : configured;
  try {
    if (configured === "" && !isFile(file)) create(file, make());
    const text = readFileSync(file, "utf8").trim();
    if ((statSync(file).mode & OTHERS) === 0 || process.platform === "win32") return text;
    const message = `the key ${file} can be read by other users, and ${danger}: chmod 600 it`;
    if (configured === "" || warn === undefined) throw new SettingsError(message);
    warn(message);
    return text;
  } catch (cause) {
    if (cause instanceof SettingsError) throw cause;
    throw new SettingsError(`the key ${file} cannot be used: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Reads the default key file; undefined if it does not exist.
 *
 * @throws SettingsError as openKeyFile
 */
export function readKeyFile(where: KeyFile): string | undefined {
  const { configured: _, ...inFolder } = where;
  if (!isFile(join(where.dataDir, where.name))) return undefined;
  return openKeyFile(inFolder, () => "");
}

/**
 * Returns the 32 bytes that a key file contains in base64url. A missing default file is created with random bytes.
 *
 * @throws SettingsError as openKeyFile, and for a file with other content
 */
export function openSeedFile(where: KeyFile): Uint8Array {
  const text = openKeyFile(where, newSeed);
  const seed = decodeBase64Url(text);
  if (seed?.length === SEED_BYTES) return seed;
  const file = where.configured === undefined || where.configured === "" ? where.name : where.configured;
  throw new SettingsError(`the key ${file} is not ${SEED_BYTES} bytes in base64url`);
}

/** Creates the file with its whole content at once. Otherwise, after a crash, the next start could find half a key. */
function create(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  rmSync(draft, { force: true });
  const handle = openSync(draft, "wx", 0o600);
  try {
    writeSync(handle, text);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
  try {
    linkSync(draft, file);
  } catch (error) {
    // If another process has created the file in the meantime, its key is used.
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
