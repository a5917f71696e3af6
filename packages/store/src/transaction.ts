import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Cells } from "./row.ts";
import type { Dialect, SqlValue, Statement, WriteTx } from "./store.ts";

type OrPromise<T> = T | Promise<T>;

/** Runs the statements of one connection. */
export interface Executor {
  readonly dialect: Dialect;
  all(sql: string, params: readonly SqlValue[]): OrPromise<Cells[]>;
  get(sql: string, params: readonly SqlValue[]): OrPromise<Cells | undefined>;
  run(sql: string, params: readonly SqlValue[]): OrPromise<{ changes: number }>;
  /**
   * Whether a statement is waiting for the database's answer. Absent for a database whose statements are synchronous.
   */
  readonly isWaiting?: boolean;
  /** Ends the connection, so that waiting statements fail. Absent for a database whose statements are synchronous. */
  destroy?(): void;
}

/** A store's only connection for writes. */
export interface WriteConnection extends Executor {
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Sets a savepoint before the next function. */
  savepoint(): Promise<void>;
  /** Removes the savepoint. The changes since the savepoint stay. */
  release(): Promise<void>;
  /** Undoes the changes since the savepoint, and removes the savepoint. */
  rollbackToSavepoint(): Promise<void>;
  /**
   * Whether the transaction is still open. False after the database aborted all of it, as SQLite does when the disk is
   * full.
   */
  readonly isInTransaction: boolean;
}

/**
 * The `tx` argument of a transaction function. The object gives access to the connection until the function
 * settles.
 */
export class Transaction implements WriteTx {
  readonly #executor: Executor;
  readonly #hooks: (() => void)[] = [];
  readonly #ownHooks: (() => void)[] = [];
  readonly #undoHooks: (() => void)[] = [];
  #over = false;
  #hasChanged = false;
  #failure: { readonly error: unknown } | undefined;
  /** Resolves when the database has answered all statements of `send`; undefined without such a statement. */
  #answered: Promise<unknown> | undefined;
  /** The number of statements that the database has not answered yet. */
  #running = 0;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  get dialect(): Dialect {
    return this.#executor.dialect;
  }

  /**
   * Ends the connection if a statement is still waiting for the database's answer.
   *
   * @returns whether a statement was waiting
   */
  destroyIfWaiting(): boolean {
    if (this.#executor.isWaiting !== true) return false;
    this.#executor.destroy?.();
    return true;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Whether the function may have changed rows. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** Hooks that run when the changes are durable. */
  get hooks(): readonly (() => void)[] {
    return this.#hooks;
  }

  /** Hooks that run when the function has succeeded. */
  get ownHooks(): readonly (() => void)[] {
    return this.#ownHooks;
  }

  /** Hooks that run when the changes are undone after the function succeeded. */
  get undoHooks(): readonly (() => void)[] {
    return this.#undoHooks;
  }

  end(): void {
    this.#over = true;
  }

  /**
   * Resolves when the database has answered all statements of the function, to the error of the first failed
   * statement. Never rejects.
   */
  async outcome(): Promise<{ readonly error: unknown } | undefined> {
    await this.#answered;
    return this.#failure;
  }

  /** Whether a statement of the function failed. */
  get hasFailed(): boolean {
    return this.#failure !== undefined;
  }

  /**
   * Checks the statements of a function that has returned. See `assertNoFailure`.
   *
   * @throws Error also if the function did not await a statement, because its result is then unknown
   */
  assertDone(): void {
    if (this.#running > 0) {
      const message = "a transaction function returned before its statements ended; await every statement";
      this.#failure ??= { error: new Error(message) };
    }
    this.assertNoFailure();
  }

  /**
   * Throws the error of the first failed statement, even if the function has caught the error. Postgres accepts no
   * further statement after a failed one, and SQLite must behave alike.
   */
  assertNoFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async all<T>(...[row, sql, params = []]: Statement<T>): Promise<T[]> {
    this.#note(sql);
    const rows = await this.#execute((executor) => executor.all(sql, params));
    return rows.map((found) => row.check(found));
  }

  async get<T>(...[row, sql, params = []]: Statement<T>): Promise<T | undefined> {
    this.#note(sql);
    const found = await this.#execute((executor) => executor.get(sql, params));
    return found && row.check(found);
  }

  run(sql: string, params: readonly SqlValue[] = []): Promise<{ changes: number }> {
    this.#hasChanged = true;
    return this.#execute((executor) => executor.run(sql, params));
  }

  send(sql: string, params: readonly SqlValue[] = []): void {
    const executor = this.#use();
    this.assertNoFailure();
    this.#hasChanged = true;
    const fail = (error: unknown) => {
      this.#failure ??= { error };
    };
    try {
      const sent = executor.run(sql, params);
      if (!(sent instanceof Promise)) return;
      const answered = sent.catch(fail);
      this.#answered = this.#answered === undefined ? answered : Promise.all([this.#answered, answered]);
    } catch (error) {
      fail(error);
    }
  }

  afterCommit(hook: () => void): void {
    this.#use();
    this.#hooks.push(hook);
  }

  afterRun(hook: () => void, undone?: () => void): void {
    this.#use();
    this.#ownHooks.push(hook);
    if (undone !== undefined) this.#undoHooks.push(undone);
  }

  /** Records that the function may have changed rows, unless the statement begins with SELECT. */
  #note(sql: string): void {
    if (!sql.startsWith("SELECT")) this.#hasChanged = true;
  }

  async #execute<T>(statement: (executor: Executor) => OrPromise<T>): Promise<T> {
    const executor = this.#use();
    this.assertNoFailure();
    this.#running++;
    try {
      return await statement(executor);
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    } finally {
      this.#running--;
    }
  }

  #use(): Executor {
    if (this.#over)
      throw new Error("a transaction was used after its end; await every statement within the function");
    return this.#executor;
  }
}

const current = new AsyncLocalStorage<Transaction>();

/**
 * Binds `fn` to the current async context. The queue runs `fn` later, but traces and log lines of `fn` must still name
 * the call that started the transaction.
 *
 * @throws Error within a transaction, because the outer transaction would wait for the inner one
 */
export function capture<T>(fn: (tx: Transaction) => Promise<T>): (tx: Transaction) => Promise<T> {
  if (current.getStore()?.isOver === false)
    throw new Error("a transaction was started within a transaction; use the `tx` of the outer transaction");
  // An AsyncResource does the same as AsyncLocalStorage.snapshot(), in a tenth of the time.
  const context = new AsyncResource("depute.transaction", { requireManualDestroy: true });
  return (tx) => context.runInAsyncScope(() => current.run(tx, fn, tx));
}

/**
 * Calls `fn`, and rejects with its error, or with the error of a failed statement that `fn` caught. If `fn` exceeds
 * `limitMs`, rejects with DeputeError: DEPENDENCY_UNAVAILABLE if a statement waits for the database, INTERNAL if `fn`
 * waits for anything else.
 */
export async function runWithin<T>(
  fn: (tx: Transaction) => Promise<T>,
  tx: Transaction,
  limitMs: number,
  timers: Timers,
): Promise<T> {
  let cancel = () => {};
  const limit = new Promise<never>((_, reject) => {
    cancel = timers.after(limitMs, () => {
      if (tx.destroyIfWaiting()) {
        const options = { metadata: { service: "store" } };
        const message = `the database did not answer within ${limitMs} ms`;
        return reject(new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, options));
      }
      const message = `a transaction took longer than ${limitMs} ms: it waits for something other than its statements`;
      reject(new DeputeError(ErrorReason.INTERNAL, message));
    });
  });
  try {
    const value = await Promise.race([fn(tx), limit]);
    tx.assertDone();
    return value;
  } finally {
    cancel();
    tx.end();
  }
}
