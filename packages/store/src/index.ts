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
export {
  bytes,
  type Column,
  FOUND,
  flag,
  integer,
  memberOf,
  nullable,
  oneOf,
  optional,
  type Row,
  type RowOf,
  real,
  row,
  text,
} from "./row.ts";
export {
  type Dialect,
  partsOf,
  type ReadTx,
  type SqlValue,
  type Statement,
  type Store,
  type WriteOptions,
  type WriteTx,
} from "./store.ts";
export type { StoreState } from "./watch.ts";
