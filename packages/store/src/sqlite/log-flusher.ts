import { closeSync, fdatasync, openSync } from "node:fs";

/** Flushes SQLite's write-ahead log to disk. The event loop goes on meanwhile: SQLite itself would stop it. */
export class LogFlusher {
  readonly #path: string;
  #fd: number | undefined;

  /** @param file the database; it is in WAL mode, and its log is there from the first commit on */
  constructor(file: string) {
    this.#path = `${file}-wal`;
  }

  /** Resolves when what was committed before is on disk. */
  flush(): Promise<void> {
    this.#fd ??= openSync(this.#path, "r");
    const fd = this.#fd;
    return new Promise((resolve, reject) => {
      fdatasync(fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Lets no lock of SQLite's go: those are on the database and on the log's index. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}
