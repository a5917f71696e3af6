import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { DeputeError, ErrorReason } from "@depute/core";

/**
 * Keeps other processes off a database file for as long as this one lives: it holds SQLite's own lock on an empty file
 * beside it, which the system lets go of however the process ends.
 *
 * @returns a function that gives the file free
 * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process has it
 */
export function lockDatabase(file: string): () => void {
  const path = `${file}-lock`;
  closeSync(openSync(path, "a", 0o600));
  const holder = new DatabaseSync(path, { timeout: 0 });
  try {
    holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (cause) {
    holder.close();
    throw new DeputeError(
      ErrorReason.DEPENDENCY_UNAVAILABLE,
      `the database ${file} is in use by another process`,
      { metadata: { service: "store" }, cause },
    );
  }
  return () => holder.close();
}
