import { AsyncLocalStorage, AsyncResource } from "node:async_hooks";
import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type Dialect, partsOf, type SqlValue, type Statement, type WriteTx } from "./store.ts";

type OrPromise<T> = T | Promise<T>;

/** One connection's statements. */
export interface Executor {
  readonly dialect: Dialect;
  all<T>(sql: string, params: readonly SqlValue[]): OrPromise<T[]>;
  get<T>(sql: string, params: readonly SqlValue[]): OrPromise<T | undefined>;
  run(sql: string, params: readonly SqlValue[]): OrPromise<{ changes: number }>;
  /** Whether a statement waits for its answer; absent where statements are answered at once. */
  readonly isWaiting?: boolean;
  /** Ends the connection, and with it the statements that wait. */
  giveUp?(): void;
}

/** The one connection that writes. */
export interface WriteConnection extends Executor {
  begin(): Promise<void>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
  /** Marks where the next function begins. */
  savepoint(): Promise<void>;
  /** Keeps what was done since the mark, and removes the mark. */
  release(): Promise<void>;
  /** Undoes what was done since the mark, and removes the mark. */
  rollbackToSavepoint(): Promise<void>;
  /** False once the database has given the whole transaction up, as SQLite does when the disk is full. */
  readonly isInTransaction: boolean;
}

/** What a transaction function holds: the connection, for as long as its turn lasts. */
export class Transaction implements WriteTx {
  readonly #executor: Executor;
  readonly #hooks: (() => void)[] = [];
  readonly #ownHooks: (() => void)[] = [];
  readonly #undoHooks: (() => void)[] = [];
  #over = false;
  #hasChanged = false;

  constructor(executor: Executor) {
    this.#executor = executor;
  }

  get dialect(): Dialect {
    return this.#executor.dialect;
  }

  /** Ends the connection if the database owes an answer. Returns whether it does. */
  giveUpWaiting(): boolean {
    if (this.#executor.isWaiting !== true) return false;
    this.#executor.giveUp?.();
    return true;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Whether there is anything to undo. */
  get hasChanged(): boolean {
    return this.#hasChanged;
  }

  /** What is to be called once the changes are durable. */
  get hooks(): readonly (() => void)[] {
    return this.#hooks;
  }

  /** What is to be called once the function has succeeded. */
  get ownHooks(): readonly (() => void)[] {
    return this.#ownHooks;
  }

  /** What is to be called when the changes are undone after that. */
  get undoHooks(): readonly (() => void)[] {
    return this.#undoHooks;
  }

  end(): void {
    this.#over = true;
  }

  async all<T>(...statement: Statement<T>): Promise<T[]> {
    const { row, sql, params } = partsOf(statement);
    this.#note(sql);
    const rows = await this.#use().all<Found>(sql, params);
    return row === undefined ? (rows as T[]) : rows.map((found) => row.check(found));
  }

  async get<T>(...statement: Statement<T>): Promise<T | undefined> {
    const { row, sql, params } = partsOf(statement);
    this.#note(sql);
    const found = await this.#use().get<Found>(sql, params);
    return row === undefined || found === undefined ? (found as T | undefined) : row.check(found);
  }

  async run(sql: string, params: readonly SqlValue[] = []): Promise<{ changes: number }> {
    this.#hasChanged = true;
    return this.#use().run(sql, params);
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

  /** What returns rows may change them, too. */
  #note(sql: string): void {
    if (!sql.startsWith("SELECT")) this.#hasChanged = true;
  }

  #use(): Executor {
    if (this.#over) throw new Error("a transaction was used after its end");
    return this.#executor;
  }
}

type Found = Readonly<Record<string, SqlValue>>;

const current = new AsyncLocalStorage<Transaction>();

/**
 * Readies `fn` to be called later with its transaction, in the caller's async context (traces and request ids are
 * the caller's, whoever works the queue off).
 *
 * @throws Error within a transaction: it would wait for itself
 */
export function capture<T>(fn: (tx: Transaction) => Promise<T>): (tx: Transaction) => Promise<T> {
  if (current.getStore()?.isOver === false) throw new Error("a transaction was begun within a transaction");
  // What AsyncLocalStorage.snapshot() does, for a tenth of its time.
  const context = new AsyncResource("depute.transaction", { requireManualDestroy: true });
  return (tx) => context.runInAsyncScope(() => current.run(tx, fn, tx));
}

/**
 * Calls `fn`; rejects with its error. When it takes longer than `limitMs`, rejects with DeputeError:
 * DEPENDENCY_UNAVAILABLE if the database owes an answer, INTERNAL if `fn` waits for something else.
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
      if (tx.giveUpWaiting()) {
        const options = { metadata: { service: "store" } };
        const message = `the database did not answer within ${limitMs} ms`;
        return reject(new DeputeError(ErrorReason.DEPENDENCY_UNAVAILABLE, message, options));
      }
      const message = `a transaction took longer than ${limitMs} ms: it waits for something other than its statements`;
      reject(new DeputeError(ErrorReason.INTERNAL, message));
    });
  });
  try {
    return await Promise.race([fn(tx), limit]);
  } finally {
    cancel();
    tx.end();
  }
}
