export type { Migration } from "./migrations.ts";
export { openStore, type StoreOptions } from "./open.ts";
export type { ReadTx, SqlValue, Store, WriteTx } from "./store.ts";
