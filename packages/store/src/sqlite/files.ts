import { fstatSync, statSync } from "node:fs";
import { StoreLostError } from "../errors.ts";

interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** What stands beside a database in use: its log, the log's index, and the lock of the process. */
const BESIDE = ["", "-wal", "-shm", "-lock"] as const;

/**
 * The files that a database is open on. Whoever removes or replaces one of them takes along what is written from then on,
 * and SQLite does not notice: it goes on with files that no path leads to any more.
 */
export class DatabaseFiles {
  readonly #open: ReadonlyMap<string, Identity>;

  /**
   * To be made when all files are open.
   *
   * @param before what the path of the database led to before SQLite opened it
   * @param log the descriptor of the log
   * @throws StoreLostError when they were replaced meanwhile
   */
  constructor(file: string, before: Identity, log: number) {
    const open = new Map(BESIDE.map((suffix) => [`${file}${suffix}`, identityOf(`${file}${suffix}`)]));
    open.set(file, before);
    open.set(`${file}-wal`, fstatSync(log, { bigint: true }));
    this.#open = open;
    this.check();
  }

  /**
   * Checks that each path still leads to the file that is open. An open file keeps its number, so equal numbers mean the
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

/** @throws StoreLostError when the path leads nowhere */
export function identityOf(path: string): Identity {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return { dev, ino };
  } catch (cause) {
    throw new StoreLostError(`${path} was removed while it was in use`, cause);
  }
}
