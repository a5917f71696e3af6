import { fstatSync, statSync } from "node:fs";
import { StoreLostError } from "../errors.ts";

interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** The files of a database in use: the database, its log, the log's index, and the process lock. */
const FILE_SUFFIXES = ["", "-wal", "-shm", "-lock"] as const;

/**
 * Checks the files that a database has open. If another program removes or replaces a file, SQLite does not notice. Its
 * later writes then go to a file that has no path.
 */
export class DatabaseFiles {
  readonly #open: ReadonlyMap<string, Identity>;

  /**
   * Records the identities of a database's files, all of which must be open.
   *
   * @param before the identity of the database file before SQLite opened it
   * @param log the open descriptor of the log
   * @throws StoreLostError when a file was removed or replaced in the meantime
   */
  constructor(file: string, before: Identity, log: number) {
    const open = new Map(FILE_SUFFIXES.map((suffix) => [`${file}${suffix}`, identityOf(`${file}${suffix}`)]));
    open.set(file, before);
    open.set(`${file}-wal`, fstatSync(log, { bigint: true }));
    this.#open = open;
    this.check();
  }

  /**
   * Checks that each path still leads to the open file. An open file keeps its inode number, so equal numbers mean the
   * same file.
   *
   * @throws StoreLostError
   */
  check(): void {
    for (const [path, { dev, ino }] of this.#open) {
      const now = identityOf(path);
      if (now.ino === ino && now.dev === dev) continue;
      throw new StoreLostError(`${path} was removed or replaced while it was in use`);
    }
  }
}

/**
 * Returns the identity of the file at a path.
 *
 * @throws StoreLostError when the path does not exist
 */
export function identityOf(path: string): Identity {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return { dev, ino };
  } catch (cause) {
    throw new StoreLostError(`${path} was removed while it was in use`, cause);
  }
}
