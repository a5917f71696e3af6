import type { Row } from "./row.ts";
import type { SqlValue } from "./sql-value.ts";

export type { SqlValue } from "./sql-value.ts";

/** The kind of database, for the few statements that differ between the kinds. */
export type Dialect = "sqlite" | "postgres";

/** The arguments of a statement: the type of its rows, its SQL, and the values of its `?` placeholders in order. */
export type Statement<T> = [row: Row<T>, sql: string, params?: readonly SqlValue[]];

/** Reads one consistent state. The object is valid until the transaction function settles. */
export interface ReadTx {
  readonly dialect: Dialect;
  /** Returns all rows of one statement. */
  all<T>(...statement: Statement<T>): Promise<T[]>;
  /** Returns the first row of one statement, or undefined. */
  get<T>(...statement: Statement<T>): Promise<T | undefined>;
}

/** A transaction that reads its own writes. */
export interface WriteTx extends ReadTx {
  /**
   * Runs one statement that changes rows. Use `all` or `get` for a statement with `RETURNING`.
   *
   * @throws ConstraintError when a row breaks a constraint. Any failed statement ends the function: the store undoes
   * its changes, and `write` rejects with the statement's error.
   */
  run(sql: string, params?: readonly SqlValue[]): Promise<{ changes: number }>;
  /**
   * Sends one statement that changes rows, and does not wait for the database's answer. Statements take effect in the
   * order in which the function sends them. If the statement fails, a later statement of the function or `write` itself
   * rejects with its error, and the store undoes the function's changes.
   */
  send(sql: string, params?: readonly SqlValue[]): void;
  /**
   * Runs `hook` when the transaction function has succeeded, before its changes are durable. A write that the hook
   * starts may therefore join the same commit. If the changes are undone later, such as by a failed commit, `undone`
   * runs before any other write.
   */
  afterRun(hook: () => void, undone?: () => void): void;
  /**
   * Runs `hook` when this transaction is durable, before `write` resolves. The hook never runs if the transaction is
   * rolled back.
   */
  afterCommit(hook: () => void): void;
}

export interface WriteOptions {
  /**
   * Whether the store may run the function again. Set this option only if the function does no more than change rows,
   * collect results and register hooks. Before a second run, the store undoes the function's changes and calls its
   * `undone` hooks. Repeatable functions share a savepoint, so they cost less. After a conflict with another process,
   * the store also runs the function again, in a later commit. Writes that callers started later may then take effect
   * before this one.
   */
  readonly isRepeatable?: boolean;
}

/**
 * SQL over SQLite and Postgres through one interface; statements use the common subset of both. The function passed to
 * `read` or `write` may await only calls of its `tx`, because functions of other callers wait until this function ends.
 * Network calls and timers are forbidden; a nested transaction is refused. A function that exceeds the store's time
 * limit fails.
 */
export interface Store {
  /**
   * Runs `fn` on a consistent state that includes every earlier commit. The promise rejects with the error of `fn`.
   *
   * @throws DeputeError LIMIT_EXCEEDED when too many reads wait, SHUTTING_DOWN after `close`, DEPENDENCY_UNAVAILABLE
   * when the database fails, INTERNAL when `fn` exceeds the time limit
   */
  read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T>;
  /**
   * Runs `fn` in a transaction, and resolves with its result when the changes are durable on disk. When `fn` throws,
   * its changes are rolled back and the promise rejects with its error. The writes of one caller take effect in the
   * order of the calls. Callers take turns, and waiting writes commit together.
   *
   * @throws DeputeError LIMIT_EXCEEDED when too many writes wait, SHUTTING_DOWN after `close`, DEPENDENCY_UNAVAILABLE
   * when the database fails or another transaction conflicts, INTERNAL when `fn` exceeds the time limit
   */
  write<T>(fn: (tx: WriteTx) => Promise<T>, options?: WriteOptions): Promise<T>;
  /** Reports commits of other processes to a shared schema. Undefined for a store that only one process uses. */
  readonly sharing?: Sharing | undefined;
  /** Waits for the calls in progress and the waiting calls, then closes the database. Idempotent. */
  close(): Promise<void>;
}

/** The facts that a process can learn about commits of other processes to a shared schema. */
export interface Sharing {
  /**
   * Returns a number that grows with each commit that changes rows. Equal numbers before and after a read show that no
   * process changed rows during the read.
   */
  version(): Promise<number>;
  /**
   * Registers a listener that must remove copies of rows from memory. If another process may have committed since this
   * process's last batch, the listener runs before the first function of the next batch. Copies that only `write`
   * functions use are then never stale.
   */
  onOthersCommit(listener: () => void): void;
}
