import type { Timers } from "@depute/core";
import { isStoreFailure } from "../errors.ts";
import type { Store } from "../store.ts";
import type { SqliteConnection } from "./connection.ts";

/** The value of `PRAGMA auto_vacuum` with which SQLite can return free pages to the file system in small steps. */
const INCREMENTAL = 2;
/** A file keeps up to this number of free pages for later rows: 4 MiB. */
const KEPT_PAGES = 1_024;
/**
 * A file keeps free pages up to this part of its used pages, if that is more than KEPT_PAGES. Otherwise a steady load
 * would return pages and take them again.
 */
const KEPT_PART = 1 / 8;
/**
 * Maximum number of pages that one step returns to the file system. A step of this size occupies the writer for about a
 * millisecond.
 */
const STEP_PAGES = 256;
/** Milliseconds from a commit to the check for free pages. */
const CHECK_MS = 1_000;
/** Milliseconds between two steps, in which other writes run. */
const STEP_MS = 20;

/**
 * Prepares a file for {@link FreeSpace}. A new file gets the mode `auto_vacuum` at once, so call this function before
 * any write. A file of an earlier version is rewritten once. The disk then needs as much free space as the size of the
 * file. Without that space, the file stays unchanged, and new rows use its free pages.
 *
 * @param onError receives the failure of the rewrite
 */
export function enableIncrementalVacuum(
  connection: SqliteConnection,
  onError: (error: unknown, message: string) => void,
): void {
  connection.exec("PRAGMA auto_vacuum = INCREMENTAL");
  if (connection.pragma("auto_vacuum") === INCREMENTAL) return;
  try {
    connection.exec("VACUUM");
  } catch (error) {
    onError(error, "the database could not be rewritten, so its file keeps the space of deleted rows");
  }
}

export interface FreeSpaceOptions {
  readonly connection: SqliteConnection;
  readonly write: Store["write"];
  /** Called after pages were returned. The file on disk shrinks at its next checkpoint. */
  readonly onShrunk: () => void;
  readonly timers: Timers;
  readonly onError: (error: unknown, message: string) => void;
}

/**
 * Returns the pages of deleted rows to the file system, step by step between other writes. After the last step, a file
 * has at most {@link KEPT_PAGES} free pages, or {@link KEPT_PART} of its used pages, whichever is more.
 */
export class FreeSpace {
  readonly #options: FreeSpaceOptions;
  readonly #isUsable: boolean;
  #cancel: (() => void) | undefined;
  /** Whether steps are running. A commit then need not schedule a check. */
  #isShrinking = false;
  #isClosed = false;

  constructor(options: FreeSpaceOptions) {
    this.#options = options;
    this.#isUsable = options.connection.pragma("auto_vacuum") === INCREMENTAL;
  }

  /** Schedules a check for free pages. Call this method after each commit. */
  committed(): void {
    if (this.#isUsable && !this.#isShrinking)
      this.#cancel ??= this.#schedule(CHECK_MS, () => this.#excess() > 0 && this.#step());
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  #schedule(ms: number, fn: () => void): (() => void) | undefined {
    if (this.#isClosed) return undefined;
    return this.#options.timers.after(ms, () => {
      this.#cancel = undefined;
      fn();
    });
  }

  /** Returns the number of free pages beyond those that the file keeps. */
  #excess(): number {
    const { connection } = this.#options;
    const free = connection.pragma("freelist_count");
    const size = connection.pragma("page_count");
    return free - Math.max(KEPT_PAGES, Math.ceil((size - free) * KEPT_PART));
  }

  #step(): void {
    const { connection, write, onShrunk, onError } = this.#options;
    this.#isShrinking = true;
    write(async () => {
      const excess = this.#excess();
      if (excess > 0) connection.exec(`PRAGMA incremental_vacuum(${Math.min(STEP_PAGES, excess)})`);
      return excess - STEP_PAGES;
    }).then(
      (rest) => {
        if (rest > 0) {
          this.#cancel = this.#schedule(STEP_MS, () => this.#step());
          return;
        }
        this.#isShrinking = false;
        onShrunk();
      },
      (error: unknown) => {
        this.#isShrinking = false;
        // StoreWatch already reports failures of the store itself. The next commit schedules the next check.
        if (!this.#isClosed && !isStoreFailure(error))
          onError(error, "free pages could not be returned to the file system");
      },
    );
  }
}
