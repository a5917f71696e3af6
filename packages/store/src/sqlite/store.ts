import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { GroupCommit } from "../group-commit.ts";
import { KEYS_TABLE, keysToRecord, NOTE_KEY, type RecordedKey, type StoreKeys } from "../keys.ts";
import type { OpenSettings, StoreSettings } from "../options.ts";
import type { ReadTx, Store, WriteTx } from "../store.ts";
import { probeTable, StoreWatch } from "../watch.ts";
import { Checkpoints } from "./checkpoints.ts";
import { SqliteConnection } from "./connection.ts";
import { DatabaseFiles, identityOf } from "./files.ts";
import { lockDatabase } from "./lock.ts";
import { LogFlusher } from "./log-flusher.ts";
import { migrate } from "./migrate.ts";
import { Reader } from "./reader.ts";

/** Pages of the log, 32 MiB, from which on the writer folds what the thread beside it has left. */
const CHECKPOINT_PAGES = 8_000;
/** Pages held in memory, filled as they are used. SQLite's own 2 MiB do not hold the upper levels of large tables. */
const WRITER_CACHE_KIB = 32 * 1024;

/** Opens a file: one connection that writes, and one that reads. */
export async function openSqliteFile(
  file: string,
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
): Promise<Store> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Only the owner may read it, and SQLite gives its log the same mode.
  closeSync(openSync(file, "a", 0o600));
  const unlock = lockDatabase(file);
  const before = identityOf(file);
  const watch = new StoreWatch(settings);
  const onFailure = (error: Error) => watch.suspect(error);
  let writing: SqliteConnection | undefined;
  try {
    writing = new SqliteConnection(file, { readOnly: false, onFailure });
    const connection = writing;
    writing.exec("PRAGMA journal_mode = WAL");
    // Checkpoints are flushed by SQLite. Commits are flushed by GroupCommit, before anybody is told of them: SQLite itself
    // (FULL) would stop the event loop for it.
    writing.exec("PRAGMA synchronous = NORMAL");
    writing.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
    writing.exec(`PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    writing.exec(`PRAGMA cache_size = -${WRITER_CACHE_KIB}`);
    if (settings.keys !== undefined) recordKeys(writing, settings.keys);
    migrate(writing, migrations);
    writing.exec(probeTable("BLOB"));
    // What a savepoint may have to restore is kept in memory: in a file it costs more than the write itself.
    writing.exec("PRAGMA temp_store = MEMORY");
    const reading = new SqliteConnection(file, { readOnly: true, onFailure });
    reading.exec(`PRAGMA cache_size = -${settings.readCacheMib * 1024}`);
    const log = new LogFlusher(file);
    const files = new DatabaseFiles(file, before, log.fd);
    const checkpoints = new Checkpoints(file, settings.onError);
    const flush = async () => {
      checkpoints.committed();
      await log.flush();
      // On disk, but perhaps in files that no path leads to any more.
      files.check();
    };
    const writer = new GroupCommit({ connection, flush, onFailure, ...settings });
    const reader = new Reader({ connection: reading, durable: () => writer.durable, ...settings });
    const read: Store["read"] = (fn) => reader.read(fn);
    const write: Store["write"] = (fn, options) => writer.write(fn, options);
    watch.start({ look: async () => files.check(), store: { read, write } });
    let closed: Promise<void> | undefined;
    const close = async () => {
      watch.close();
      await Promise.all([reader.close(), writer.close()]);
      await checkpoints.close();
      log.close();
      reading.close();
      // The last connection to close folds the log into the file, so it has to be the one that may write.
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
    throw error;
  }
}

/** @throws StoreKeyError */
function recordKeys(connection: SqliteConnection, keys: StoreKeys): void {
  connection.exec(KEYS_TABLE);
  const recorded = connection.all<RecordedKey>("SELECT name, fingerprint FROM store_keys");
  for (const { name, fingerprint } of keysToRecord(recorded, keys))
    connection.run(NOTE_KEY, [name, fingerprint]);
}

/** Opens a database in memory. It has one connection, so reads take their turn among the writes. */
export async function openSqliteMemory(
  migrations: StoreSettings["migrations"],
  settings: OpenSettings,
): Promise<Store> {
  const connection = new SqliteConnection(":memory:", { readOnly: false });
  migrate(connection, migrations);
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

/** Refuses writes as a connection opened for reading does. */
function readOnly(tx: WriteTx, connection: SqliteConnection): ReadTx {
  const guarded = <T>(statement: () => Promise<T>): Promise<T> => {
    connection.exec("PRAGMA query_only = 1");
    try {
      // It has been done when this returns, whatever the promise says.
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
