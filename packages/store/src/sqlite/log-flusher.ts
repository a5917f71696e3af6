import { closeSync, fdatasync, openSync } from "node:fs";

/** Flushes SQLite's write-ahead log to disk. The event loop goes on meanwhile: SQLite itself would stop it. */
export class LogFlusher {
  /** The descriptor of the log. */
  readonly fd: number;
  #isClosed = false;

  /** @param file the database; it is in WAL mode, and something was committed, so that its log is there */
  constructor(file: string) {
    this.fd = openSync(`${file}-wal`, "r");
  }

  /** Resolves when what was committed before is on disk. */
  flush(): Promise<void> {
    return new Promise((resolve, reject) => {
      fdatasync(this.fd, (error) => (error === null ? resolve() : reject(error)));
    });
  }

  /** Lets no lock of SQLite's go: those are on the database and on the log's index. */
  close(): void {
    if (!this.#isClosed) closeSync(this.fd);
    this.#isClosed = true;
  }
}
