export { ConstraintError, type ConstraintKind, isUniqueViolation } from "./errors.ts";
export { type Migration, MigrationError } from "./migrations.ts";
export { openStore, type StoreLocation, type StoreOptions, type StoreSettings } from "./open.ts";
export { ReadCache } from "./read-cache.ts";
export type { Dialect, ReadTx, SqlValue, Store, WriteOptions, WriteTx } from "./store.ts";
