import { systemTimers, type Timers } from "@depute/core";
import { Lane } from "./lane.ts";
import { capture, type Executor, runWithin, Transaction } from "./transaction.ts";

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

export interface GroupCommitOptions {
  readonly connection: WriteConnection;
  readonly maxWaiting: number;
  readonly maxBatch: number;
  readonly transactionLimitMs: number;
  readonly onError: (error: unknown, what: string) => void;
  readonly timers?: Timers | undefined;
}

interface Job {
  readonly fn: (tx: Transaction) => Promise<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A function that has run: what to do once its fate is known to be durable. */
interface Ran {
  readonly job: Job;
  readonly settle: () => void;
  readonly hooks: readonly (() => void)[];
}

/**
 * Writes that are made durable together.
 *
 * Functions run one after the other in one database transaction, each from a savepoint of its own, so that one which throws
 * takes only its own changes back. Nobody is answered before the one commit, which costs a flush to disk however many
 * share it; not even who failed, since an earlier function's changes, still undone by a failing commit, may be why.
 */
export class GroupCommit {
  readonly #options: GroupCommitOptions;
  readonly #timers: Timers;
  readonly #lane: Lane<Job>;

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

  async write<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    return new Promise<T>((resolve, reject) => {
      this.#lane.push({ fn: captured, resolve: resolve as (value: unknown) => void, reject });
    });
  }

  close(): Promise<void> {
    return this.#lane.close();
  }

  async #commitSome(next: () => Job | undefined): Promise<void> {
    const { connection, maxBatch } = this.#options;
    const taken: Job[] = [];
    const ran: Ran[] = [];
    try {
      await connection.begin();
      for (let job = next(); job !== undefined; job = taken.length < maxBatch ? next() : undefined) {
        taken.push(job);
        ran.push(await this.#run(job));
      }
      await connection.commit();
    } catch (error) {
      if (connection.isInTransaction) await connection.rollback().catch(this.#report("rolling back failed"));
      // Even if it could not begin, or it would be tried for ever.
      if (taken.length === 0) taken.push(...some(next, maxBatch));
      for (const job of taken) job.reject(error);
      return;
    }
    for (const { settle, hooks } of ran) {
      for (const hook of hooks) this.#call(hook);
      settle();
    }
  }

  /** Throws only when the connection fails, and with it the batch. */
  async #run(job: Job): Promise<Ran> {
    const { connection, transactionLimitMs } = this.#options;
    await connection.savepoint();
    const tx = new Transaction(connection);
    try {
      const value = await runWithin(job.fn, tx, transactionLimitMs, this.#timers);
      await connection.release();
      return { job, settle: () => job.resolve(value), hooks: tx.hooks };
    } catch (error) {
      if (!connection.isInTransaction) throw error;
      await connection.rollbackToSavepoint();
      return { job, settle: () => job.reject(error), hooks: [] };
    }
  }

  #call(hook: () => void): void {
    try {
      hook();
    } catch (error) {
      this.#options.onError(error, "a hook after a commit threw");
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
