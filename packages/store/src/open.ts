import type { Migration } from "./migrations.ts";
import type { Store } from "./store.ts";

export interface StoreOptions {
  /** Path of the SQLite file, created with its folder when missing; or a database that lives and dies in memory. */
  readonly location: { readonly file: string } | "memory";
  readonly migrations: readonly Migration[];
  /** Told about what an `afterCommit` hook threw; the text says what was going on. */
  readonly onError: (error: unknown, what: string) => void;
  /** Writes, and apart from them reads, that may wait; more are refused. Default 10 000. */
  readonly maxWaiting?: number;
  /** Writes committed together at most. Default 128. */
  readonly maxBatch?: number;
  /** Milliseconds that one transaction function may take. Default 5 000. */
  readonly transactionLimitMs?: number;
}

/** Opens the database and brings its schema up to date. */
export function openStore(_options: StoreOptions): Promise<Store> {
  throw new Error("not yet");
}
