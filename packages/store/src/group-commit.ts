import { type Clock, DeputeError, ErrorReason, type Random, type Timers } from "@depute/core";
import { againAfterConflicts } from "./conflicts.ts";
import { isStoreFailure, StoreLostError, UnknownCommitError } from "./errors.ts";
import { FairQueue } from "./fair-queue.ts";
import type { WriteOptions } from "./store.ts";
import { capture, runWithin, Transaction, type WriteConnection } from "./transaction.ts";

export interface Job {
  readonly fn: (tx: Transaction) => Promise<unknown>;
  /**
   * Whether `fn` may run again. The batch undoes the changes of `fn` first, for example when another function fails.
   */
  readonly isRepeatable: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * A function of the batch that has run, and the calls that follow. The batch calls `hooks` and `settle` when the result
 * is durable, or `undoHooks` if it undoes the function's changes.
 */
export interface Ran {
  readonly job: Job;
  /** The transaction of a function that succeeded. */
  readonly tx?: Transaction;
  readonly settle: () => void;
  readonly hooks: readonly (() => void)[];
  readonly undoHooks: readonly (() => void)[];
}

export interface BatchOptions {
  readonly connection: WriteConnection;
  readonly transactionLimitMs: number;
  readonly timers: Timers;
  /** Calls a hook that a function registered. An exception of the hook is reported, not thrown. */
  readonly call: (hook: () => void) => void;
}

/**
 * Runs the functions of one database transaction, one after the other. A function that is not repeatable has a separate
 * savepoint, so that the batch can undo its changes alone. Repeatable functions share one savepoint, because each
 * savepoint makes SQLite copy every page that changes later. The next of these functions runs before the database has
 * answered the statements of `WriteTx.send`. If a repeatable function throws after a change, or such a statement fails,
 * which is rare, the batch undoes the changes of all functions in the shared savepoint. Then each of these functions runs again
 * with a separate savepoint.
 */
export class Batch {
  readonly #options: BatchOptions;
  readonly #ran: Ran[] = [];
  /** The functions that have run within the shared savepoint. */
  #sharing: Ran[] | undefined;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  /** Returns all functions that have run, in order. */
  get ran(): readonly Ran[] {
    return [...this.#ran, ...(this.#sharing ?? [])];
  }

  /**
   * Runs a function. An error of the function does not reject the promise. The promise rejects only when the connection
   * fails, and then the whole batch has failed.
   */
  async run(job: Job): Promise<void> {
    if (job.isRepeatable) return this.#runSharing(job);
    await this.end();
    this.#ran.push(await this.#runAlone(job));
  }

  /**
   * Ends the shared savepoint, after the database has answered all statements of its functions. Call this method before
   * the commit.
   */
  async end(): Promise<void> {
    const sharing = this.#sharing;
    if (sharing === undefined) return;
    const { connection } = this.#options;
    for (const { tx } of sharing) {
      const failure = await tx?.outcome();
      if (failure === undefined) continue;
      if (!connection.isInTransaction) throw failure.error;
      return this.#runAgain();
    }
    await connection.release();
    this.#ran.push(...sharing);
    this.#sharing = undefined;
  }

  async #runSharing(job: Job): Promise<void> {
    const { connection } = this.#options;
    if (this.#sharing === undefined) {
      await connection.savepoint();
      this.#sharing = [];
    }
    const tx = new Transaction(connection);
    try {
      const value = await this.#call(job, tx);
      this.#sharing.push(this.#succeeded(job, tx, value));
    } catch (error) {
      if (!connection.isInTransaction) throw error;
      // After a failed statement, Postgres accepts no other statement until a rollback.
      if (tx.hasChanged || tx.hasFailed) await this.#runAgain(job);
      else this.#sharing.push(failed(job, error));
    }
  }

  /**
   * Undoes the changes of the functions in the shared savepoint. Then runs these functions and `jobs` again, with a
   * separate savepoint for each.
   */
  async #runAgain(...jobs: readonly Job[]): Promise<void> {
    const { connection, call } = this.#options;
    const sharing = this.#sharing ?? [];
    this.#sharing = undefined;
    // The hooks run first, because they must also run if the rollback fails.
    for (const { undoHooks } of sharing) for (const hook of undoHooks) call(hook);
    await connection.rollbackToSavepoint();
    for (const again of [...sharing.map((ran) => ran.job), ...jobs])
      this.#ran.push(await this.#runAlone(again));
  }

  async #runAlone(job: Job): Promise<Ran> {
    const { connection } = this.#options;
    await connection.savepoint();
    const tx = new Transaction(connection);
    try {
      const value = await this.#call(job, tx);
      await tx.outcome();
      tx.assertNoFailure();
      await connection.release();
      return this.#succeeded(job, tx, value);
    } catch (error) {
      if (!connection.isInTransaction) throw error;
      await connection.rollbackToSavepoint();
      return failed(job, error);
    }
  }

  #call(job: Job, tx: Transaction): Promise<unknown> {
    const { transactionLimitMs, timers } = this.#options;
    return runWithin(job.fn, tx, transactionLimitMs, timers);
  }

  #succeeded(job: Job, tx: Transaction, value: unknown): Ran {
    for (const hook of tx.ownHooks) this.#options.call(hook);
    return { job, tx, settle: () => job.resolve(value), hooks: tx.hooks, undoHooks: tx.undoHooks };
  }
}

function failed(job: Job, error: unknown): Ran {
  return { job, settle: () => job.reject(error), hooks: [], undoHooks: [] };
}

export interface GroupCommitOptions {
  readonly connection: WriteConnection;
  /**
   * Makes all committed changes durable while the connection does other work. Absent for a database whose
   * commits are durable without a flush. A rejection makes the store unusable.
   */
  readonly flush?: () => Promise<void>;
  /** Called with each failure of the store itself, including a {@link StoreLostError}. */
  readonly onFailure?: (error: DeputeError) => void;
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
  readonly onError: (error: unknown, message: string) => void;
  /**
   * Called after each committed batch with the batch's duration in seconds, from BEGIN until the changes are durable.
   */
  readonly onCommit?: ((seconds: number) => void) | undefined;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Random source for the waits before a conflicting function runs again. */
  readonly random: Random;
  /**
   * Returns the caller on whose behalf the current code writes. If this option is absent, all callers share one queue.
   */
  readonly callerOf?: (() => string) | undefined;
}

/**
 * Commits many writes together. Each batch takes waiting functions of all callers, which take turns. Functions run one
 * after the other in one database transaction ({@link Batch}), which has a single commit and a single flush to disk. No
 * caller gets an answer before the batch is durable. Even a caller whose function failed waits: another function's
 * change may have caused the failure, and a failed commit undoes that change. While one batch is flushed, the next
 * batch runs. After a failed flush, the data on disk is unknown. Therefore the store refuses every call until the
 * database is opened again. If a connection breaks during a commit, the callers are refused at once. The hooks of their
 * functions wait until the database reports whether the batch committed, because copies of rows in memory must agree
 * with the tables. No later batch runs before that report.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #timers: Timers;
  readonly #lane: Lane<Job>;
  #flushing: Promise<void> | undefined;
  #broken: StoreLostError | undefined;
  /**
   * The batch whose COMMIT got no response, so that its outcome is unknown. Undefined if no such batch
   * exists.
   */
  #unknown: { readonly ran: readonly Ran[]; readonly outcome: () => Promise<boolean> } | undefined;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#timers = options.timers;
    this.#lane = new Lane({
      timers: this.#timers,
      limit: "store_waiting_writes",
      max: options.maxWaiting,
      gather: true,
      serve: (next) => this.#commitSome(next),
    });
  }

  async write<T>(
    fn: (tx: Transaction) => Promise<T>,
    { isRepeatable = false }: WriteOptions = {},
  ): Promise<T> {
    if (!isRepeatable) return this.#writeOnce(fn, false);
    return againAfterConflicts(() => this.#writeOnce(fn, true), this.#options);
  }

  async #writeOnce<T>(fn: (tx: Transaction) => Promise<T>, isRepeatable: boolean): Promise<T> {
    const captured = capture(fn);
    return new Promise<T>((resolve, reject) => {
      const job = { fn: captured, isRepeatable, resolve: resolve as (value: unknown) => void, reject };
      this.#lane.push(job, this.#options.callerOf?.());
    });
  }

  /**
   * Resolves when all earlier commits are durable. Undefined if all earlier commits are already durable. Rejects after
   * a failed flush.
   */
  get durable(): Promise<void> | undefined {
    return this.#broken === undefined ? this.#flushing : Promise.reject(this.#broken);
  }

  async close(): Promise<void> {
    await this.#lane.close();
    await this.#flushing?.catch(() => {});
  }

  async #commitSome(next: () => Job | undefined): Promise<void> {
    const { connection, maxBatch, transactionLimitMs } = this.#options;
    const beginMs = this.#options.clock.monotonic();
    const jobs: Job[] = [];
    const call = (hook: () => void) => this.#call(hook);
    const batch = new Batch({ connection, transactionLimitMs, timers: this.#timers, call });
    try {
      if (this.#broken !== undefined) throw this.#broken;
      await connection.begin();
      await this.#settleUnknown();
      for (let job = next(); job !== undefined; job = jobs.length < maxBatch ? next() : undefined) {
        jobs.push(job);
        await batch.run(job);
      }
      await batch.end();
      await connection.commit();
    } catch (error) {
      if (connection.isInTransaction) await connection.rollback().catch(this.#report("rolling back failed"));
      if (error instanceof UnknownCommitError) this.#unknown = { ran: batch.ran, outcome: error.outcome };
      else this.#undo(batch.ran);
      // The batch could not begin, so the waiting functions fail with the same error. Otherwise the queue would retry
      // forever a batch that cannot begin.
      if (jobs.length === 0) jobs.push(...some(next, this.#options.maxWaiting));
      if (isStoreFailure(error)) this.#options.onFailure?.(error);
      for (const job of jobs) job.reject(error);
      return;
    }
    const { ran } = batch;
    if (this.#options.flush === undefined) return this.#settle(ran, beginMs);
    const before = this.#flushing;
    const flushing = this.#flush(ran, beginMs, before);
    this.#flushing = flushing;
    const done = () => {
      if (this.#flushing === flushing) this.#flushing = undefined;
    };
    flushing.then(done, done);
    // The next batch begins when the previous flush has ended, not earlier. Until then, more functions can join the
    // next batch.
    await before?.catch(() => {});
  }

  /** Waits for the previous flush, flushes the batch, and then settles the batch's calls. */
  async #flush(ran: readonly Ran[], beginMs: number, before: Promise<void> | undefined): Promise<void> {
    try {
      await before;
      await this.#options.flush?.();
    } catch (error) {
      if (this.#broken === undefined) {
        this.#broken =
          error instanceof StoreLostError ? error : new StoreLostError("a flush to disk failed", error);
        this.#options.onError(
          error,
          `${this.#broken.detail}; the store refuses all calls until this process restarts`,
        );
        this.#options.onFailure?.(this.#broken);
      }
      this.#undo(ran);
      for (const { job } of ran) job.reject(this.#broken);
      throw this.#broken;
    }
    this.#settle(ran, beginMs);
  }

  /**
   * Runs the hooks of the batch whose COMMIT got no response, if that batch has committed. Its callers have
   * already received an error.
   */
  async #settleUnknown(): Promise<void> {
    if (this.#unknown === undefined) return;
    const { ran, outcome } = this.#unknown;
    const hasCommitted = await outcome();
    this.#unknown = undefined;
    if (hasCommitted) this.#settle(ran, undefined);
    else this.#undo(ran);
  }

  #undo(ran: readonly Ran[]): void {
    for (const { undoHooks } of ran) for (const hook of undoHooks) this.#call(hook);
  }

  /**
   * Runs the hooks of a durable batch, and settles its calls.
   *
   * @param beginMs the time at which the batch began; undefined if its duration is unknown
   */
  #settle(ran: readonly Ran[], beginMs: number | undefined): void {
    if (beginMs !== undefined) this.#options.onCommit?.((this.#options.clock.monotonic() - beginMs) / 1000);
    for (const { settle, hooks } of ran) {
      for (const hook of hooks) this.#call(hook);
      settle();
    }
  }

  #call(hook: () => void): void {
    try {
      hook();
    } catch (error) {
      this.#options.onError(error, "a hook of a transaction threw");
    }
  }

  #report(message: string): (error: unknown) => void {
    return (error) => this.#options.onError(error, message);
  }
}

function some<T>(next: () => T | undefined, max: number): T[] {
  const items: T[] = [];
  for (let one = next(); one !== undefined; one = items.length < max ? next() : undefined) items.push(one);
  return items;
}

export interface LaneOptions<Job> {
  readonly timers: Timers;
  /** The name of the limit that a refusal states when the queue is full. */
  readonly limit: string;
  readonly max: number;
  /**
   * Whether the first job waits until the end of the event loop's turn, so that jobs pushed later in that turn join its
   * batch.
   */
  readonly gather: boolean;
  /** Runs one or more of the jobs that `next` returns. The promise never rejects. */
  readonly serve: (next: () => Job | undefined) => Promise<void>;
}

/** A bounded queue for a resource that serves one job at a time. Callers take turns. */
export class Lane<Job> {
  readonly #options: LaneOptions<Job>;
  readonly #queue = new FairQueue<Job>();
  #pumping: Promise<void> | undefined;
  #closed = false;

  constructor(options: LaneOptions<Job>) {
    this.#options = options;
  }

  /**
   * @param caller the caller for which the job runs; empty for none
   * @throws DeputeError LIMIT_EXCEEDED when the queue is full, SHUTTING_DOWN after `close`
   */
  push(job: Job, caller = ""): void {
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the store is closed");
    const { limit, max } = this.#options;
    if (this.#queue.length >= max) {
      const metadata = { limit, max: String(max) };
      throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the store is overloaded; call again later", {
        metadata,
      });
    }
    this.#queue.push(job, caller);
    this.#pumping ??= this.#pump();
  }

  /** Refuses further jobs, and resolves when all accepted jobs are done. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#pumping;
  }

  async #pump(): Promise<void> {
    if (this.#options.gather) await this.#options.timers.nextTurn();
    while (this.#queue.length > 0) {
      await this.#options.serve(() => this.#queue.shift());
      // Lets other work of the event loop run. Jobs that this work pushes may be served with the waiting ones.
      if (this.#queue.length > 0) await this.#options.timers.nextTurn();
    }
    this.#pumping = undefined;
  }
}
