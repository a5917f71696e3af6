import { DeputeError, ErrorReason, systemTimers, type Timers } from "@depute/core";
import type { Pool } from "pg";
import { isStoreFailure } from "../errors.ts";
import type { ReadTx } from "../store.ts";
import { capture, runWithin, Transaction } from "../transaction.ts";
import type { StoreClient } from "./client.ts";
import { fromPostgresError } from "./errors.ts";
import { ReadStatements } from "./statements.ts";

export interface PostgresReaderOptions {
  /** Makes a pool of connections, each a {@link StoreClient}. */
  readonly openPool: () => Pool;
  readonly maxWaiting: number;
  readonly transactionLimitMs: number;
  /** Told of each failure of the database. */
  readonly onFailure: (error: DeputeError) => void;
  readonly timers?: Timers | undefined;
}

/** Reads on connections of their own: each sees what is committed when it begins, and no write waits for it. */
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
    this.#timers = options.timers ?? systemTimers;
  }

  /** @throws DeputeError LIMIT_EXCEEDED when too many wait, SHUTTING_DOWN after `close` */
  async read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    const { maxWaiting, onFailure } = this.#options;
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the store is closed");
    if (this.#pool.waitingCount >= maxWaiting) {
      const metadata = { limit: "store_waiting_reads", max: String(maxWaiting) };
      throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the store has too much to do; call again later", {
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

  /** Leaves the connections that are open: none of them may have survived what befell the database. */
  renew(): void {
    if (this.#closed) return;
    const left = this.#pool;
    this.#pool = this.#options.openPool();
    left.end().catch(() => {});
  }

  /** Takes no more, and resolves when everything taken is done. */
  async done(): Promise<void> {
    this.#closed = true;
    if (this.#open === 0) return;
    await new Promise<void>((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** Ends the connections. To be called when it is done. */
  close(): Promise<void> {
    return this.#pool.end();
  }

  async #read<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const pooled = await this.#pool.connect().catch((error) => Promise.reject(fromPostgresError(error)));
    const client = pooled as unknown as StoreClient;
    try {
      await client
        .query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .catch((error) => Promise.reject(fromPostgresError(error)));
      const tx = new Transaction(new ReadStatements(client));
      return await runWithin(fn, tx, this.#options.transactionLimitMs, this.#timers);
    } finally {
      // There is nothing to commit: a connection that does not end its transaction is not used again.
      if (!client.isBroken) await client.query("COMMIT").catch(() => client.destroy());
      pooled.release(client.isBroken);
    }
  }
}
