import type { Timers } from "@depute/core";
import { runWithin, Transaction, type WriteConnection } from "./transaction.ts";

export interface Job {
  readonly fn: (tx: Transaction) => Promise<unknown>;
  /** Whether `fn` may be run again when what it has changed was undone for another's sake. */
  readonly isRepeatable: boolean;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A function that has run: what to do once its fate is known to be durable. */
export interface Ran {
  readonly job: Job;
  readonly settle: () => void;
  readonly hooks: readonly (() => void)[];
  readonly undoHooks: readonly (() => void)[];
}

export interface BatchOptions {
  readonly connection: WriteConnection;
  readonly transactionLimitMs: number;
  readonly timers: Timers;
  /** Calls a hook; never throws. */
  readonly call: (hook: () => void) => void;
}

/**
 * The functions of one database transaction, one after the other.
 *
 * A function that throws takes only its own changes back, so each has a savepoint. Those that may be run again share one,
 * because most never throw once they have changed something, and a savepoint costs a copy of each page that is changed
 * after it: when one does throw, all of them are undone, and run again with a savepoint each.
 */
export class Batch {
  readonly #options: BatchOptions;
  readonly #ran: Ran[] = [];
  /** Those of the savepoint that is shared. */
  #sharing: Ran[] | undefined;

  constructor(options: BatchOptions) {
    this.#options = options;
  }

  /** All that have run, in their order. */
  get ran(): readonly Ran[] {
    return [...this.#ran, ...(this.#sharing ?? [])];
  }

  /** Throws only when the connection fails, and with it the batch. */
  async run(job: Job): Promise<void> {
    if (job.isRepeatable) return this.#runSharing(job);
    await this.end();
    this.#ran.push(await this.#runAlone(job));
  }

  /** To be called before the commit. */
  async end(): Promise<void> {
    if (this.#sharing === undefined) return;
    await this.#options.connection.release();
    this.#ran.push(...this.#sharing);
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
      // After a statement that failed, Postgres takes no other until something is rolled back.
      if (tx.hasChanged || connection.dialect === "postgres") await this.#runAgain(job);
      else this.#sharing.push(failed(job, error));
    }
  }

  /** Undoes those that share the savepoint, and runs them and one more with a savepoint each. */
  async #runAgain(job: Job): Promise<void> {
    const { connection, call } = this.#options;
    const sharing = this.#sharing ?? [];
    this.#sharing = undefined;
    await connection.rollbackToSavepoint();
    for (const { undoHooks } of sharing) for (const hook of undoHooks) call(hook);
    for (const again of [...sharing.map((ran) => ran.job), job]) this.#ran.push(await this.#runAlone(again));
  }

  async #runAlone(job: Job): Promise<Ran> {
    const { connection } = this.#options;
    await connection.savepoint();
    const tx = new Transaction(connection);
    try {
      const value = await this.#call(job, tx);
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
    return { job, settle: () => job.resolve(value), hooks: tx.hooks, undoHooks: tx.undoHooks };
  }
}

function failed(job: Job, error: unknown): Ran {
  return { job, settle: () => job.reject(error), hooks: [], undoHooks: [] };
}
