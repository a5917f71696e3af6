import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import type { Timers } from "@depute/core";
import { GroupCommit, Lane } from "../group-commit.ts";
import { INSERT_KEY, KEYS_TABLE, keysToRecord, READ_KEYS, RECORDED_KEY, type StoreKeys } from "../keys.ts";
import type { OpenSettings, StoreSettings } from "../options.ts";
import type { ReadTx, Store, WriteTx } from "../store.ts";
import { capture, runWithin, Transaction } from "../transaction.ts";
import { probeTable, StoreWatch } from "../watch.ts";
import { SqliteConnection } from "./connection.ts";
import { DatabaseFiles, identityOf } from "./files.ts";
import { lockDatabase } from "./lock.ts";
import { Checkpoints, LogFlusher } from "./log.ts";
import { migrate } from "./migrate.ts";
import { openFailure } from "./open-failure.ts";
import { enableIncrementalVacuum, FreeSpace } from "./space.ts";

/** Maximum number of consecutive reads before the reader lets other work of the event loop run. */
const MAX_IN_A_ROW = 128;

export interface ReaderOptions {
  readonly connection: SqliteConnection;
  readonly maxWaiting: number;
  readonly transactionLimitMs: number;
  /**
   * Returns a promise that resolves when all data that a read can see is durable; undefined if the data is durable
   * already.
   */
  readonly durable: () => Promise<void> | undefined;
  readonly timers: Timers;
}

/**
 * Reads on a separate connection. Each read sees the commits before its start, and no write waits for a read. A result
 * is returned only when its data is durable, because a crash before then would undo the data.
 */
export class Reader {
  readonly #options: ReaderOptions;
  readonly #timers: Timers;
  readonly #lane: Lane<() => Promise<void>>;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#timers = options.timers;
    this.#lane = new Lane({
      timers: this.#timers,
      limit: "store_waiting_reads",
      max: options.maxWaiting,
      gather: false,
      serve: async (next) => {
        let remainingJobs = MAX_IN_A_ROW;
        for (let job = next(); job !== undefined; job = --remainingJobs > 0 ? next() : undefined) await job();
      },
    });
  }

  async read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    return new Promise<T>((resolve, reject) => {
      this.#lane.push(async () => {
        const settle = await this.#run(captured).then(
          (value) => () => resolve(value),
          (error: unknown) => () => reject(error),
        );
        const durable = this.#options.durable();
        if (durable === undefined) settle();
        // The next read need not wait until this result is durable.
        else durable.then(settle, reject);
      });
    });
  }

  close(): Promise<void> {
    return this.#lane.close();
  }

  async #run<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const { connection, transactionLimitMs } = this.#options;
    connection.beginRead();
    try {
      return await runWithin(fn, new Transaction(connection), transactionLimitMs, this.#timers);
    } finally {
      connection.endRead();
    }
  }
}

/**
 * Size of the log, in pages, at which the writing connection itself runs a checkpoint: 32 MiB. Below this size,
 * the checkpoint thread runs the checkpoints.
 */
const CHECKPOINT_PAGES = 8_000;
/** Size of the writer's page cache in KiB. SQLite's default of 2 MiB does not hold the upper levels of large tables. */
const WRITER_CACHE_KIB = 32 * 1024;

/**
 * Opens a file with one connection for writes and one for reads.
 *
 * @throws StoreFileError when the file cannot be opened; StoreKeyError; MigrationError; StoreLostError when a file is
 * removed meanwhile; DeputeError DEPENDENCY_UNAVAILABLE when another process uses the file
 */
export async function openSqliteFile(
  file: string,
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
): Promise<Store> {
  const unlock = lockedFile(file);
  const before = identityOf(file);
  const watch = new StoreWatch(settings);
  const onFailure = (error: Error) => watch.suspect(error);
  let writing: SqliteConnection | undefined;
  try {
    writing = new SqliteConnection(file, { readOnly: false, onFailure });
    const connection = writing;
    enableIncrementalVacuum(writing, settings.onError);
    writing.exec("PRAGMA journal_mode = WAL");
    // SQLite flushes only checkpoints. GroupCommit flushes commits before any caller gets its result, because SQLite's
    // own flush (FULL) would stop the event loop.
    writing.exec("PRAGMA synchronous = NORMAL");
    writing.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
    writing.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    writing.exec(`PRAGMA cache_size = -${WRITER_CACHE_KIB}`);
    if (settings.keys !== undefined) recordKeys(writing, settings.keys);
    migrate(writing, migrations, settings.clock);
    writing.exec(probeTable("BLOB"));
    // SQLite keeps in memory the data from which it restores a savepoint. To write this data to a file would cost more
    // than the write itself.
    writing.exec("PRAGMA temp_store = MEMORY");
    const reading = new SqliteConnection(file, { readOnly: true, onFailure });
    reading.exec(`PRAGMA cache_size = -${settings.readCacheMib * 1024}`);
    const log = new LogFlusher(file);
    const files = new DatabaseFiles(file, before, log.fd);
    const checkpoints = new Checkpoints(file, settings.onError);
    const flush = async () => {
      checkpoints.committed();
      space.committed();
      await log.flush();
      // The flushed data is on disk, but the files may have been removed or replaced. This check detects that.
      files.check();
    };
    const writer = new GroupCommit({ connection, flush, onFailure, ...settings });
    const reader = new Reader({ connection: reading, durable: () => writer.durable, ...settings });
    const read: Store["read"] = (fn) => reader.read(fn);
    const write: Store["write"] = (fn, options) => writer.write(fn, options);
    const { timers, onError } = settings;
    const space = new FreeSpace({ connection, write, onShrunk: () => checkpoints.fold(), timers, onError });
    space.committed();
    watch.start({ check: async () => files.check(), store: { read, write } });
    let closed: Promise<void> | undefined;
    const close = async () => {
      watch.close();
      space.close();
      await Promise.all([reader.close(), writer.close()]);
      await checkpoints.close();
      log.close();
      reading.close();
      // The writing connection is closed last, because the last connection to close folds the log into the file.
      connection.close();
      unlock();
    };
    return {
      read,
      write,
      close: () => {
        closed ??= close();
        return closed;
      },
    };
  } catch (error) {
    writing?.close();
    unlock();
    throw openFailure(file, error);
  }
}

/**
 * Creates a file if it is missing, and locks it.
 *
 * @returns a function that unlocks the file
 */
function lockedFile(file: string): () => void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    // The mode allows only the owner to read the file. SQLite gives the log the same mode.
    closeSync(openSync(file, "a", 0o600));
    return lockDatabase(file);
  } catch (error) {
    throw openFailure(file, error);
  }
}

/**
 * Compares the keys with the keys that the store has recorded, and records new keys.
 *
 * @throws StoreKeyError
 */
function recordKeys(connection: SqliteConnection, keys: StoreKeys): void {
  connection.exec(KEYS_TABLE);
  const recorded = connection.all(READ_KEYS).map(RECORDED_KEY.check);
  for (const { name, fingerprint } of keysToRecord(recorded, keys))
    connection.run(INSERT_KEY, [name, fingerprint]);
}

/** Opens a database in memory. The database has a single connection, so reads and writes take turns. */
export async function openSqliteMemory(
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
): Promise<Store> {
  const connection = new SqliteConnection(":memory:", { readOnly: false });
  migrate(connection, migrations, settings.clock);
  const writer = new GroupCommit({ connection, ...settings });
  let closed: Promise<void> | undefined;
  return {
    read: (fn) => writer.write((tx) => fn(readOnly(tx, connection))),
    write: (fn, options) => writer.write(fn, options),
    close: () => {
      closed ??= writer.close().then(() => connection.close());
      return closed;
    },
  };
}

/** Returns a transaction that refuses writes, as a read-only connection does. */
function readOnly(tx: WriteTx, connection: SqliteConnection): ReadTx {
  const guarded = <T>(statement: () => Promise<T>): Promise<T> => {
    connection.exec("PRAGMA query_only = 1");
    try {
      // The statement has run when this function returns, even before the promise is awaited.
      return statement();
    } finally {
      connection.exec("PRAGMA query_only = 0");
    }
  };
  return {
    dialect: tx.dialect,
    all: (...statement) => guarded(() => tx.all(...statement)),
    get: (...statement) => guarded(() => tx.get(...statement)),
  };
}
