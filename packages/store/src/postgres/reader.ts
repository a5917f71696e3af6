import { DeputeError, ErrorReason, systemTimers, type Timers } from "@depute/core";
import type { Pool } from "pg";
import type { ReadTx } from "../store.ts";
import { capture, runWithin, Transaction } from "../transaction.ts";
import { fromPostgresError } from "./errors.ts";
import { reading } from "./statements.ts";

export interface PostgresReaderOptions {
  readonly pool: Pool;
  readonly maxWaiting: number;
  readonly transactionLimitMs: number;
  readonly timers?: Timers | undefined;
}

/** Reads on connections of their own: each sees what is committed when it begins, and no write waits for it. */
export class PostgresReader {
  readonly #options: PostgresReaderOptions;
  readonly #timers: Timers;
  #open = 0;
  #closed = false;
  #onIdle = () => {};

  constructor(options: PostgresReaderOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
  }

  /** @throws DeputeError LIMIT_EXCEEDED when too many wait, SHUTTING_DOWN after `close` */
  async read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    const { pool, maxWaiting, transactionLimitMs } = this.#options;
    if (this.#closed) throw new DeputeError(ErrorReason.SHUTTING_DOWN, "the store is closed");
    if (pool.waitingCount >= maxWaiting) {
      const metadata = { limit: "store_waiting_reads", max: String(maxWaiting) };
      throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "the store has too much to do; call again later", {
        metadata,
      });
    }
    this.#open++;
    try {
      const client = await pool.connect().catch((error) => Promise.reject(fromPostgresError(error)));
      let isUsable = true;
      try {
        await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        return await runWithin(captured, new Transaction(reading(client)), transactionLimitMs, this.#timers);
      } finally {
        await client.query("COMMIT").catch(() => {
          isUsable = false;
        });
        client.release(!isUsable);
      }
    } finally {
      this.#open--;
      if (this.#open === 0) this.#onIdle();
    }
  }

  /** Takes no more, and resolves when everything taken is done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#open > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    await this.#options.pool.end();
  }
}
