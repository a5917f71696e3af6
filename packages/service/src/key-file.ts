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
const SEED_BYTES = 32;

/** Where a key is, and how one is made. */
export interface KeyFile {
  readonly dataDir: string;
  /** Of the file in the data folder, which is made when it is not there. */
  readonly name: string;
  /** A file elsewhere; absent or empty for the one in the data folder. */
  readonly configured?: string;
  /** Said of a file that other users can read. */
  readonly danger: string;
  /**
   * Told of a configured file that other users can read, as secrets that an orchestrator mounts often can be: their
   * folder is what keeps others out. Without it such a file is refused.
   */
  readonly warn?: (message: string) => void;
}

/**
 * The text of a key file, for its owner's eyes only (mode 0600). A configured file is never made: a mistyped path would
 * start a service with a new identity.
 *
 * @param make a new key's text
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
 * The 32 bytes that a key file holds in base64url, made at random when it is not there.
 *
 * @throws SettingsError as openKeyFile, and for a file that holds something else
 */
export function openSeedFile(where: KeyFile): Uint8Array {
  const text = openKeyFile(
    where,
    () => `${encodeBase64Url(crypto.getRandomValues(new Uint8Array(SEED_BYTES)))}\n`,
  );
  const seed = decodeBase64Url(text);
  if (seed?.length === SEED_BYTES) return seed;
  const file = where.configured === undefined || where.configured === "" ? where.name : where.configured;
  throw new SettingsError(`the key ${file} is not ${SEED_BYTES} bytes in base64url`);
}

/** Makes the whole file appear at once: a crash between must not leave half a key for the next start. */
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
