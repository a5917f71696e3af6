import type { OpenSettings, StoreOptions } from "./options.ts";
import { openPostgres } from "./postgres/store.ts";
import { openSqliteFile, openSqliteMemory } from "./sqlite/store.ts";
import type { Store } from "./store.ts";

const MAX_WAITING = 10_000;
const MAX_BATCH = 128;
const TRANSACTION_LIMIT_MS = 5_000;
const READ_CACHE_MIB = 16;

/**
 * Opens the database and brings its schema up to date.
 *
 * A file has one process at a time: two would wait for each other with a blocked event loop. `FILE-lock` beside it says so. So
 * has a schema, by a lock of the database: services remember what their tables hold.
 *
 * @throws StoreKeyError when the store was made with other keys, in which case nothing in it was changed; MigrationError when
 * database and code do not fit; DeputeError DEPENDENCY_UNAVAILABLE when the file or the
 * database cannot be used, or is in use by another process
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const settings: OpenSettings = {
    onError: options.onError,
    ...(options.onState && { onState: options.onState }),
    ...(options.keys && { keys: options.keys }),
    maxWaiting: options.maxWaiting ?? MAX_WAITING,
    maxBatch: options.maxBatch ?? MAX_BATCH,
    transactionLimitMs: options.transactionLimitMs ?? TRANSACTION_LIMIT_MS,
    readCacheMib: options.readCacheMib ?? READ_CACHE_MIB,
    ...(options.timers && { timers: options.timers }),
  };
  if (options.postgres !== undefined) {
    return openPostgres(options.postgres, options.schema, options.migrations, settings);
  }
  return options.file === undefined
    ? openSqliteMemory(options.migrations, settings)
    : openSqliteFile(options.file, options.migrations, settings);
}
