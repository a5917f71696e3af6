import type { Row } from "./row.ts";
import type { SqlValue } from "./sql-value.ts";

export type { SqlValue } from "./sql-value.ts";

/** Which database it is, for the few statements that cannot be the same. */
export type Dialect = "sqlite" | "postgres";

/** A statement with the rows that it gives; its `?` placeholders are filled from `params` in order. */
export type Statement<T> =
  | [row: Row<T>, sql: string, params?: readonly SqlValue[]]
  /** Rows without a check: the caller states their type. */
  | [sql: string, params?: readonly SqlValue[]];

/** The parts of a statement. */
export function partsOf<T>(statement: Statement<T>): {
  readonly row: Row<T> | undefined;
  readonly sql: string;
  readonly params: readonly SqlValue[];
} {
  if (typeof statement[0] === "string") {
    const [sql, params = []] = statement as [sql: string, params?: readonly SqlValue[]];
    return { row: undefined, sql, params };
  }
  const [row, sql, params = []] = statement as [row: Row<T>, sql: string, params?: readonly SqlValue[]];
  return { row, sql, params };
}

/** Reads at one consistent state. Usable until the function that it was given to settles. */
export interface ReadTx {
  readonly dialect: Dialect;
  /** All rows of one statement. */
  all<T>(...statement: Statement<T>): Promise<T[]>;
  /** The first row, or undefined. */
  get<T>(...statement: Statement<T>): Promise<T | undefined>;
}

/** Reads its own writes. */
export interface WriteTx extends ReadTx {
  /**
   * One statement that changes rows. `all` and `get` take `... RETURNING` as well.
   *
   * @throws ConstraintError where a row breaks a constraint; the transaction stays usable.
   */
  run(sql: string, params?: readonly SqlValue[]): Promise<{ changes: number }>;
  /**
   * Runs `hook` when `fn` has succeeded, before its changes are durable: what the hook has written may join the same
   * commit. Should `fn`'s changes be undone after all, since the commit failed, `undone` is run before any other write.
   */
  afterRun(hook: () => void, undone?: () => void): void;
  /** Runs `hook` after this transaction is durable, before `write` resolves; never when it is rolled back. */
  afterCommit(hook: () => void): void;
}

export interface WriteOptions {
  /**
   * Whether the function may be run again: it does nothing but to change rows, to note what it found, and to leave hooks.
   * The changes of its first run are undone then, and its `undone` hooks have been called. Such functions cost less
   * together.
   */
  readonly isRepeatable?: boolean;
}

/**
 * SQL behind one interface, so that SQLite can be exchanged for Postgres: statements keep to what both understand.
 *
 * The function given to `read` or `write` may await calls of its `tx` and nothing else, since others wait for it: no
 * network, no timers, no transaction within it (refused). One that takes longer than the store's limit fails.
 */
export interface Store {
  /** Runs `fn` on a consistent state of everything committed before. */
  read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T>;
  /**
   * Runs `fn` in a transaction, and resolves with its result once that is durable on disk. When `fn` throws, its changes
   * are rolled back and the error is passed on. Writes take effect one after the other, in the order of the calls;
   * waiting ones are committed together.
   *
   * @throws DeputeError LIMIT_EXCEEDED when too many wait, SHUTTING_DOWN after `close`.
   */
  write<T>(fn: (tx: WriteTx) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** Finishes what waits, then closes the file. Idempotent. */
  close(): Promise<void>;
}
