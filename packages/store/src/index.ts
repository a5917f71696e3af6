export {
  ConstraintError,
  type ConstraintKind,
  isStoreFailure,
  isUniqueViolation,
  StoreLostError,
} from "./errors.ts";
export { StoreKeyError, type StoreKeys } from "./keys.ts";
export { type Migration, MigrationError, type Migrations } from "./migrations.ts";
export { openStore } from "./open.ts";
export type { StoreLocation, StoreOptions, StoreSettings } from "./options.ts";
export { ReadCache } from "./read-cache.ts";
export type { Dialect, ReadTx, SqlValue, Store, WriteOptions, WriteTx } from "./store.ts";
export type { StoreState } from "./watch.ts";
