import type { Clock, Random, Timers } from "@depute/core";
import type { StoreKeys } from "./keys.ts";
import type { Migrations } from "./migrations.ts";
import type { Store } from "./store.ts";
import type { StoreState } from "./watch.ts";

/**
 * Where the tables are: in a SQLite file, in a schema of a Postgres database, or in memory for tests. A missing file is
 * created with its folder, and a missing schema is created.
 */
export type StoreLocation =
  | { readonly file: string; readonly memory?: false; readonly postgres?: undefined }
  | { readonly postgres: string; readonly schema: string; readonly file?: undefined; readonly memory?: false }
  | { readonly memory: true; readonly file?: undefined; readonly postgres?: undefined };

export interface StoreSettings {
  /** The migrations of the store's tables: one list, or one list for each module. */
  readonly migrations: Migrations;
  /** Receives errors that no caller gets, such as the exception of a hook, with a message for the log. */
  readonly onError: (error: unknown, message: string) => void;
  /**
   * Called at each change of the store's state; a store is ready when it opens. Without this listener, the store does
   * not check itself. Never called for a store in memory.
   */
  readonly onState?: (state: StoreState) => void;
  /** Called once the store is open, before `openStore` returns it. */
  readonly onOpen?: (store: Pick<Store, "read">) => void;
  /** Called after each group of writes with its duration in seconds, from BEGIN until its changes are durable. */
  readonly onCommit?: (seconds: number) => void;
  /**
   * The keys on which the store depends. The store records the keys at its creation, and compares them each
   * time it is opened.
   */
  readonly keys?: StoreKeys;
  /** Maximum number of waiting writes, and also of waiting reads. Further calls are refused. Default 10 000. */
  readonly maxWaiting?: number;
  /** Maximum number of writes in one commit. Default 128. */
  readonly maxBatch?: number;
  /** Maximum duration of one transaction function, in milliseconds. Default 5 000. */
  readonly transactionLimitMs?: number;
  /** The timers of the store, such as for `transactionLimitMs`; the system's timers when absent. */
  readonly timers?: Timers;
  /**
   * Returns the caller on whose behalf the current code writes; empty for none. The waiting writes of different callers
   * take turns. If this option is absent, all writes share one queue.
   */
  readonly callerOf?: () => string;
  /** Random source for the waits before a conflicting function runs again; the system's source when absent. */
  readonly random?: Random;
  /** The clock for the dates of applied migrations and for durations; the system's clock when absent. */
  readonly clock?: Clock;
  /** Size of the read cache of a SQLite file, in MiB. Default 16. */
  readonly readCacheMib?: number;
  /**
   * Whether other processes may use the schema at the same time, if they also set this option. The writes of all
   * processes run one after the other. A program that keeps copies of rows in memory clears them in a listener of
   * `Store.sharing`. Postgres only. Default false.
   */
  readonly isShared?: boolean;
}

export type StoreOptions = StoreLocation & StoreSettings;

/** The options with their defaults filled in. */
export interface OpenSettings {
  readonly onError: StoreSettings["onError"];
  readonly onState?: StoreSettings["onState"];
  readonly onCommit?: StoreSettings["onCommit"];
  readonly keys?: StoreKeys;
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
  readonly readCacheMib: number;
  readonly isShared: boolean;
  readonly callerOf?: (() => string) | undefined;
  readonly timers: Timers;
  readonly random: Random;
  readonly clock: Clock;
}
