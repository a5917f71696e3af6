import { systemClock, systemRandom, systemTimers } from "@depute/core";
import type { OpenSettings, StoreOptions } from "./options.ts";
import { openSqliteFile, openSqliteMemory } from "./sqlite/store.ts";
import type { Store } from "./store.ts";

const MAX_WAITING = 10_000;
const MAX_BATCH = 128;
const TRANSACTION_LIMIT_MS = 5_000;
const READ_CACHE_MIB = 16;

/**
 * Opens the database and applies pending migrations. Only one process at a time may use a SQLite file, because two
 * processes would block each other's event loops. A lock on the file `FILE-lock` beside the database excludes other
 * processes. Only one process at a time may use a Postgres schema that is not shared, because services cache their
 * tables. A lock in the database excludes other processes.
 *
 * @throws Error for `isShared` without a Postgres schema, and for a malformed name of a schema
 * @throws StoreKeyError when the store was created with other keys; the store is then unchanged
 * @throws MigrationError when database and program have different schemas
 * @throws StoreFileError when a SQLite file cannot be opened
 * @throws DeputeError DEPENDENCY_UNAVAILABLE when the database does not answer, or another process uses it
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const settings: OpenSettings = {
    onError: options.onError,
    ...(options.onState && { onState: options.onState }),
    ...(options.onCommit && { onCommit: options.onCommit }),
    ...(options.callerOf && { callerOf: options.callerOf }),
    ...(options.keys && { keys: options.keys }),
    maxWaiting: options.maxWaiting ?? MAX_WAITING,
    maxBatch: options.maxBatch ?? MAX_BATCH,
    transactionLimitMs: options.transactionLimitMs ?? TRANSACTION_LIMIT_MS,
    readCacheMib: options.readCacheMib ?? READ_CACHE_MIB,
    isShared: options.isShared ?? false,
    timers: options.timers ?? systemTimers,
    random: options.random ?? systemRandom,
    clock: options.clock ?? systemClock,
  };
  if (settings.isShared && options.postgres === undefined)
    throw new Error("only a Postgres schema can be shared; set `postgres`");
  const store = await open(options, settings);
  options.onOpen?.(store);
  return store;
}

async function open(options: StoreOptions, settings: OpenSettings): Promise<Store> {
  if (options.postgres !== undefined) {
    // The import is dynamic, so that a process with SQLite does not load the driver of Postgres.
    const { openPostgres } = await import("./postgres/store.ts");
    return openPostgres(options.postgres, options.schema, options.migrations, settings);
  }
  return options.file === undefined
    ? openSqliteMemory(options.migrations, settings)
    : openSqliteFile(options.file, options.migrations, settings);
}
