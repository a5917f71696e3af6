export { deleteRows, type RowSelection } from "./delete-rows.ts";
export {
  ConstraintError,
  type ConstraintKind,
  isStoreFailure,
  isUniqueViolation,
  StoreFileError,
  StoreLostError,
} from "./errors.ts";
export { StoreKeyError, type StoreKeys } from "./keys.ts";
export { type Lease, LeaseLostError, Leases, type LeasesOptions } from "./leases.ts";
export { type Migration, MigrationError, type Migrations } from "./migrations.ts";
export { openStore } from "./open.ts";
export type { StoreLocation, StoreOptions, StoreSettings } from "./options.ts";
export { findPostgresPrograms, postgresUser, type SystemUser } from "./postgres/local-programs.ts";
export { isPurged, markPurged, purgedTableSql } from "./purged.ts";
export { ReadCache } from "./read-cache.ts";
export { REQUEST_RETENTION_MS, type RequestKey, RequestMemory, requestTableSql } from "./requests.ts";
export {
  bytes,
  type Column,
  FOUND,
  flag,
  int64,
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
export { storeSize } from "./size.ts";
export type {
  Dialect,
  ReadTx,
  Sharing,
  SqlValue,
  Statement,
  Store,
  WriteOptions,
  WriteTx,
} from "./store.ts";
export type { StoreState } from "./watch.ts";
