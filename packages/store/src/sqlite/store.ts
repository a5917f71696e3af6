import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { GroupCommit } from "../group-commit.ts";
import type { StoreOptions } from "../open.ts";
import type { ReadTx, Store, WriteTx } from "../store.ts";
import { SqliteConnection } from "./connection.ts";
import { lockDatabase } from "./lock.ts";
import { migrate } from "./migrate.ts";
import { Reader } from "./reader.ts";

type Settings = Pick<StoreOptions, "onError" | "timers"> & {
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
};

/** Opens a file: one connection that writes, and one that reads. */
export async function openSqliteFile(
  file: string,
  migrations: StoreOptions["migrations"],
  settings: Settings,
): Promise<Store> {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  // Only the owner may read it, and SQLite gives its log the same mode.
  closeSync(openSync(file, "a", 0o600));
  const unlock = lockDatabase(file);
  let writing: SqliteConnection | undefined;
  try {
    writing = new SqliteConnection(file, { readOnly: false });
    const connection = writing;
    writing.exec("PRAGMA journal_mode = WAL");
    // A commit is on disk when it returns. (NORMAL could lose the last ones when the machine fails.)
    writing.exec("PRAGMA synchronous = FULL");
    writing.exec(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
    migrate(writing, migrations);
    const reading = new SqliteConnection(file, { readOnly: true });
    const writer = new GroupCommit({ connection, ...settings });
    const reader = new Reader({ connection: reading, ...settings });
    let closed: Promise<void> | undefined;
    const close = async () => {
      await Promise.all([reader.close(), writer.close()]);
      reading.close();
      // The last connection to close folds the log into the file, so it has to be the one that may write.
      connection.close();
      unlock();
    };
    return {
      read: (fn) => reader.read(fn),
      write: (fn) => writer.write(fn),
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

/** Opens a database in memory. It has one connection, so reads take their turn among the writes. */
export async function openSqliteMemory(
  migrations: StoreOptions["migrations"],
  settings: Settings,
): Promise<Store> {
  const connection = new SqliteConnection(":memory:", { readOnly: false });
  migrate(connection, migrations);
  const writer = new GroupCommit({ connection, ...settings });
  let closed: Promise<void> | undefined;
  return {
    read: (fn) => writer.write((tx) => fn(readOnly(tx, connection))),
    write: (fn) => writer.write(fn),
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
    all: (sql, params) => guarded(() => tx.all(sql, params)),
    get: (sql, params) => guarded(() => tx.get(sql, params)),
  };
}
