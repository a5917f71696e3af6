import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { DeputeError, ErrorReason } from "@depute/core";

/** SQLite's result code for a lock that another process holds. */
const BUSY = 5;

/**
 * Prevents other processes from opening a database file while this process runs. The function takes SQLite's lock on an
 * empty file beside the database. The operating system releases that lock when the process ends, even by a crash.
 *
 * @returns a function that unlocks the file
 * @throws DeputeError DEPENDENCY_UNAVAILABLE when another process holds the lock; errors of SQLite for a file that
 * cannot be locked
 */
export function lockDatabase(file: string): () => void {
  const path = `${file}-lock`;
  closeSync(openSync(path, "a", 0o600));
  const holder = new DatabaseSync(path, { timeout: 0 });
  try {
    holder.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (cause) {
    holder.close();
    if (((cause as { errcode?: number }).errcode ?? BUSY) !== BUSY) throw cause;
    throw new DeputeError(
      ErrorReason.DEPENDENCY_UNAVAILABLE,
      `another process uses the database ${file}; stop it or choose another file`,
      { metadata: { service: "store" }, cause },
    );
  }
  return () => holder.close();
}
