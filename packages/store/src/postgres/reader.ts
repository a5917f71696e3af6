import { DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Pool } from "pg";
import { isStoreFailure } from "../errors.ts";
import type { ReadTx } from "../store.ts";
import { capture, runWithin, Transaction } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { fromPostgresError } from "./errors.ts";
import { ReadStatements } from "./statements.ts";

export interface PostgresReaderOptions {
  /** Creates a pool of {@link StoreClient} connections. */
  readonly openPool: () => Pool;
  readonly maxWaiting: number;
  readonly transactionLimitMs: number;
  /** Receives each failure of the database. */
  readonly onFailure: (error: DeputeError) => void;
  readonly timers: Timers;
}

/** Reads on separate connections. Each read sees the commits before its start, and no write waits for a read. */
export class PostgresReader {
  readonly #options: PostgresReaderOptions;
  readonly #timers: Timers;
  #pool: Pool;
  #open = 0;
  #closed = false;
  #onIdle = () => {};

  constructor(options: PostgresReaderOptions) {
    this.#options = options;
    this.#pool = options.openPool();
    this.#timers = options.timers;
  }

  /**
   * Runs `fn` on a consistent state.
   *
   * @throws DeputeError LIMIT_EXCEEDED when too many reads wait, SHUTTING_DOWN after `done`, DEPENDENCY_UNAVAILABLE
   * when the database does not answer; errors of `fn`
   */
  async read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    const { maxWaiting, onFailure } = this.#options;
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the store is closed");
    if (this.#pool.waitingCount >= maxWaiting) {
      const metadata = { limit: "store_waiting_reads", max: String(maxWaiting) };
      throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the store is overloaded; call again later", {
        metadata,
      });
    }
    this.#open++;
    try {
      return await this.#read(captured);
    } catch (error) {
      if (isStoreFailure(error)) onFailure(error);
      throw error;
    } finally {
      this.#open--;
      if (this.#open === 0) this.#onIdle();
    }
  }

  /** Replaces the pool after a failure of the database, because all connections of the old pool may be broken. */
  renew(): void {
    if (this.#closed) return;
    const previousPool = this.#pool;
    this.#pool = this.#options.openPool();
    previousPool.end().catch(() => {});
  }

  /** Refuses further reads, and resolves when the reads in progress have ended. */
  async done(): Promise<void> {
    this.#closed = true;
    if (this.#open === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** Ends the connections. Call this method after `done`. */
  close(): Promise<void> {
    return this.#pool.end();
  }

  async #read<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const pooled = await this.#pool.connect().catch((error) => Promise.reject(fromPostgresError(error)));
    const client = pooled as unknown as StoreClient;
    let hasRead = false;
    try {
      // The connection pipelines, so BEGIN and the first statement cost one round trip.
      const begun = client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
      begun.catch(() => {});
      const tx = new Transaction(new ReadStatements(client));
      const value = await runWithin(fn, tx, this.#options.transactionLimitMs, this.#timers);
      // After a failed BEGIN, the statements have no common snapshot.
      await begun.catch((error) => Promise.reject(fromPostgresError(error)));
      hasRead = true;
      return value;
    } finally {
      // COMMIT only ends the transaction, because a read changes nothing. The next read of this connection comes after
      // COMMIT in the pipeline. If COMMIT fails, the reader discards the connection.
      const ended = client.isBroken ? undefined : client.query("COMMIT").catch(() => client.destroy());
      // After a failure, a statement may still wait for the database, so no other read may get the connection before.
      if (!hasRead) await ended;
      pooled.release(client.isBroken);
    }
  }
}
