import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { CommandError } from "../exit-codes.ts";

/** Makes a folder with the mode 0700. Leaves an empty folder as it is. @throws CommandError if the folder has files */
export function emptyFolder(folder: string, advice: string): void {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new CommandError(`${folder} is not empty; ${advice}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}

/** Returns the names of the plain files in a folder, sorted. */
export function namesOf(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}

/** Copies a file to a folder, durably and with the mode 0600. Fails if the folder already has a file of that name. */
export function copyInto(source: string, folder: string, name: string): void {
  const target = join(folder, name);
  closeSync(openSync(target, "wx", 0o600));
  copyFileSync(source, target, constants.COPYFILE_FICLONE);
  syncPath(target, "r+");
}

/** Writes a new file durably, with the mode 0600. Fails if the file exists. */
export function writeDurably(path: string, content: string | Uint8Array): void {
  writeFileSync(path, content, { mode: 0o600, flag: "wx" });
  syncPath(path, "r+");
}

/** Makes the entries of a folder durable. */
export function syncFolder(folder: string): void {
  syncPath(folder, "r");
}

function syncPath(path: string, flags: string): void {
  const handle = openSync(path, flags);
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
