import { closeSync, fsyncSync, openSync } from "node:fs";
import { backup, DatabaseSync } from "node:sqlite";
import { fromSqliteError } from "./connection.ts";

/** A database file, and the path of its copy. */
export interface FileCopy {
  readonly source: string;
  /** The path of the new file, which must not exist. */
  readonly target: string;
}

/**
 * Maximum number of attempts to find an instant at which no process commits to any of the files. An attempt takes about
 * a millisecond.
 */
const MAX_TRIES = 1_000;
/**
 * The maximum number of pages in one step. One step copies the whole file, because a commit between two steps makes
 * SQLite begin the copy again.
 */
const ALL_PAGES = 2 ** 31 - 1;

/**
 * Copies database files that other processes may use at the same time. All copies show the files at the same instant,
 * like files after a crash of the machine at that instant. The function checks each copy and flushes it to disk.
 *
 * @throws Error when a file cannot be read, is damaged, or changes so often that no such instant is found
 */
export async function snapshotFiles(files: readonly FileCopy[]): Promise<void> {
  const sources: DatabaseSync[] = [];
  const monitors: DatabaseSync[] = [];
  try {
    for (const { source } of files) {
      sources.push(openForReading(source));
      monitors.push(openForReading(source));
    }
    pinInstant(sources, monitors);
    for (const [index, { target }] of files.entries()) {
      closeSync(openSync(target, "wx", 0o600));
      await backup(sources[index] as DatabaseSync, target, { rate: ALL_PAGES });
      checkFile(target);
      syncFile(target);
    }
  } catch (error) {
    throw fromSqliteError(error);
  } finally {
    for (const database of [...sources, ...monitors]) database.close();
  }
}

function openForReading(file: string): DatabaseSync {
  return new DatabaseSync(file, { readOnly: true, timeout: 5_000 });
}

/**
 * Begins a read transaction on every file, and begins again until all transactions show the same instant. The monitors
 * detect whether a file changed between the first and the last BEGIN.
 */
function pinInstant(sources: readonly DatabaseSync[], monitors: readonly DatabaseSync[]): void {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const before = monitors.map(versionOf);
    for (const source of sources) {
      source.exec("BEGIN");
      // The first read fixes the state that the transaction sees.
      source.prepare("SELECT count(*) FROM sqlite_schema").get();
    }
    if (monitors.every((monitor, index) => versionOf(monitor) === before[index])) return;
    for (const source of sources) source.exec("ROLLBACK");
  }
  throw new Error("the files change too often to be copied at one instant; repeat the command");
}

/** Returns a number that changes with each commit of another connection. */
function versionOf(monitor: DatabaseSync): unknown {
  return monitor.prepare("PRAGMA data_version").get()?.data_version;
}

/**
 * Checks the structure of a database file.
 *
 * @throws Error when the file is damaged
 */
export function checkFile(file: string): void {
  const database = new DatabaseSync(file);
  try {
    const first = database.prepare("PRAGMA quick_check(1)").get()?.quick_check;
    if (first !== "ok") throw new Error(`${file} is damaged: ${String(first)}`);
  } finally {
    database.close();
  }
}

function syncFile(file: string): void {
  const handle = openSync(file, "r+");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
