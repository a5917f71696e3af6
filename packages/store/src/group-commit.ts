import { type DeputeError, systemTimers, type Timers } from "@depute/core";
import { Batch, type Job, type Ran } from "./batch.ts";
import { isStoreFailure, StoreLostError, UnknownCommitError } from "./errors.ts";
import { Lane } from "./lane.ts";
import type { WriteOptions } from "./store.ts";
import { capture, type Transaction, type WriteConnection } from "./transaction.ts";

export interface GroupCommitOptions {
  readonly connection: WriteConnection;
  /**
   * Makes all that was committed durable, while the connection does other things; absent where a commit is durable by
   * itself. A rejection is the end of the store.
   */
  readonly flush?: () => Promise<void>;
  /** Told of each failure of the store itself, a {@link StoreLostError} included. */
  readonly onFailure?: (error: DeputeError) => void;
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
  readonly onError: (error: unknown, what: string) => void;
  readonly timers?: Timers | undefined;
}

/**
 * Writes that are made durable together.
 *
 * Functions run one after the other in one database transaction ({@link Batch}). Nobody is answered before the one commit,
 * which costs a flush to disk however many share it; not even who failed, since an earlier function's changes, still undone
 * by a failing commit, may be why.
 *
 * While one batch is flushed the next one runs. A flush that fails is the end: nobody knows what of it is on disk, so
 * nothing is written and nothing is read any more until the database is opened again.
 *
 * A connection may break while it commits. Callers are refused at once; the hooks wait until the database says whether
 * the batch committed, because memory has to agree with the tables. No other batch runs before.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #timers: Timers;
  readonly #lane: Lane<Job>;
  #flushing: Promise<void> | undefined;
  #broken: StoreLostError | undefined;
  /** The batch whose commit has an unknown outcome. */
  #unknown: { readonly ran: readonly Ran[]; readonly outcome: () => Promise<boolean> } | undefined;

  constructor(options: GroupCommitOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
    this.#lane = new Lane({
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
    const captured = capture(fn);
    return new Promise<T>((resolve, reject) => {
      this.#lane.push({ fn: captured, isRepeatable, resolve: resolve as (value: unknown) => void, reject });
    });
  }

  /** Settles when all that was committed so far is durable; undefined when it is. */
  get durable(): Promise<void> | undefined {
    return this.#broken === undefined ? this.#flushing : Promise.reject(this.#broken);
  }

  async close(): Promise<void> {
    await this.#lane.close();
    await this.#flushing?.catch(() => {});
  }

  async #commitSome(next: () => Job | undefined): Promise<void> {
    const { connection, maxBatch, transactionLimitMs } = this.#options;
    const taken: Job[] = [];
    const call = (hook: () => void) => this.#call(hook);
    const batch = new Batch({ connection, transactionLimitMs, timers: this.#timers, call });
    try {
      if (this.#broken !== undefined) throw this.#broken;
      await connection.begin();
      await this.#settleUnknown();
      for (let job = next(); job !== undefined; job = taken.length < maxBatch ? next() : undefined) {
        taken.push(job);
        await batch.run(job);
      }
      await batch.end();
      await connection.commit();
    } catch (error) {
      if (connection.isInTransaction) await connection.rollback().catch(this.#report("rolling back failed"));
      if (error instanceof UnknownCommitError) this.#unknown = { ran: batch.ran, outcome: error.outcome };
      else this.#undo(batch.ran);
      // Those that wait meet the same failure. If it could not even begin, it would be tried for ever.
      if (taken.length === 0) taken.push(...some(next, this.#options.maxWaiting));
      if (isStoreFailure(error)) this.#options.onFailure?.(error);
      for (const job of taken) job.reject(error);
      return;
    }
    const { ran } = batch;
    if (this.#options.flush === undefined) return this.#settle(ran);
    const before = this.#flushing;
    const flushing = this.#flush(ran, before);
    this.#flushing = flushing;
    const done = () => {
      if (this.#flushing === flushing) this.#flushing = undefined;
    };
    flushing.then(done, done);
    // One is flushed while the next one runs. With more under way, each would be of fewer.
    await before?.catch(() => {});
  }

  /** Flushes a batch after the one before it, and settles it. */
  async #flush(ran: readonly Ran[], before: Promise<void> | undefined): Promise<void> {
    try {
      await before;
      await this.#options.flush?.();
    } catch (error) {
      if (this.#broken === undefined) {
        this.#broken =
          error instanceof StoreLostError ? error : new StoreLostError("a flush to disk failed", error);
        this.#options.onError(error, `${this.#broken.detail}: nothing is written any more`);
        this.#options.onFailure?.(this.#broken);
      }
      this.#undo(ran);
      for (const { job } of ran) job.reject(this.#broken);
      throw this.#broken;
    }
    this.#settle(ran);
  }

  /** Runs the hooks of the batch whose commit was not answered. Its callers have been refused. */
  async #settleUnknown(): Promise<void> {
    if (this.#unknown === undefined) return;
    const { ran, outcome } = this.#unknown;
    const hasCommitted = await outcome();
    this.#unknown = undefined;
    if (hasCommitted) this.#settle(ran);
    else this.#undo(ran);
  }

  #undo(ran: readonly Ran[]): void {
    for (const { undoHooks } of ran) for (const hook of undoHooks) this.#call(hook);
  }

  #settle(ran: readonly Ran[]): void {
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

  #report(what: string): (error: unknown) => void {
    return (error) => this.#options.onError(error, what);
  }
}

function some<T>(next: () => T | undefined, max: number): T[] {
  const taken: T[] = [];
  for (let one = next(); one !== undefined; one = taken.length < max ? next() : undefined) taken.push(one);
  return taken;
}
