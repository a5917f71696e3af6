import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";

/**
 * Returns the bytes of a file.
 *
 * @throws Error of readFileSync of node:fs, for a file that cannot be read
 */
export function bytesOfFile(file: string | URL): Buffer {
  return readFileSync(file);
}

/**
 * Returns the text of a file in UTF-8.
 *
 * @throws Error of readFileSync of node:fs, for a file that cannot be read
 */
export function textOfFile(file: string | URL): string {
  return readFileSync(file, "utf8");
}

/** Returns the names of the files in a folder, sorted; empty for a missing folder. */
export function fileNames(folder: string | URL): string[] {
  if (!existsSync(folder)) return [];
  const entries = readdirSync(folder, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .sort();
}

/**
 * Returns the time at which a file last changed, in epoch milliseconds.
 *
 * @throws Error for a missing file
 */
export function modifiedMs(file: string | URL): number {
  return statSync(file).mtimeMs;
}

/**
 * Returns the text of a file. If the file does not exist, creates it first, and only its owner may read the new file.
 *
 * @param make returns the text of a new file
 */
export function readOrCreate(file: string, make: () => string): string {
  if (!existsSync(file)) writeFileSync(file, make(), { mode: 0o600 });
  return textOfFile(file);
}
