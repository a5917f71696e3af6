import type { Timers } from "@depute/core";
import type { StoreKeys } from "./keys.ts";
import type { Migrations } from "./migrations.ts";
import type { StoreState } from "./watch.ts";

/**
 * Where the data is: a SQLite file, created with its folder when missing; a schema of a Postgres database, created when
 * missing; or memory, for tests.
 */
export type StoreLocation =
  | { readonly file: string; readonly memory?: false; readonly postgres?: undefined }
  | { readonly postgres: string; readonly schema: string; readonly file?: undefined; readonly memory?: false }
  | { readonly memory: true; readonly file?: undefined; readonly postgres?: undefined };

export interface StoreSettings {
  /** The steps of the tables, or the steps of each module that has tables here. */
  readonly migrations: Migrations;
  /** Told about what an `afterCommit` hook threw; the text says what was going on. */
  readonly onError: (error: unknown, what: string) => void;
  /**
   * Called at each change of the store's state; a store is ready when it opens. Without this listener an idle store is not
   * watched. Not called for a store in memory.
   */
  readonly onState?: (state: StoreState) => void;
  /** What the store depends on. They are recorded when it is made, and compared each time it is opened. */
  readonly keys?: StoreKeys;
  /** Writes, and apart from them reads, that may wait; more are refused. Default 10 000. */
  readonly maxWaiting?: number;
  /** Writes committed together at most. Default 128. */
  readonly maxBatch?: number;
  /** Milliseconds that one transaction function may take. Default 5 000. */
  readonly transactionLimitMs?: number;
  /** Measures that limit. */
  readonly timers?: Timers;
  /** MiB of a SQLite file that are held in memory for reads at most, as they are read. Default 16. */
  readonly readCacheMib?: number;
}

export type StoreOptions = StoreLocation & StoreSettings;

/** The same with its defaults. */
export interface OpenSettings {
  readonly onError: StoreSettings["onError"];
  readonly onState?: StoreSettings["onState"];
  readonly keys?: StoreKeys;
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
  readonly readCacheMib: number;
  readonly timers?: Timers;
}
