import { systemTimers, type Timers } from "@depute/core";
import { Lane } from "../lane.ts";
import type { ReadTx } from "../store.ts";
import { capture, runWithin, Transaction } from "../transaction.ts";
import type { SqliteConnection } from "./connection.ts";

/** Reads in a row before the event loop gets its turn. */
const MAX_IN_A_ROW = 128;

export interface ReaderOptions {
  readonly connection: SqliteConnection;
  readonly maxWaiting: number;
  readonly transactionLimitMs: number;
  /** Settles when all that can be read is durable; undefined when it is. */
  readonly durable: () => Promise<void> | undefined;
  readonly timers?: Timers | undefined;
}

/**
 * Reads on a connection of their own: each sees what is committed when it begins, and no write waits for it. What was read
 * is given out once it is durable, so that nobody is told of what a failing machine takes back.
 */
export class Reader {
  readonly #options: ReaderOptions;
  readonly #timers: Timers;
  readonly #lane: Lane<() => Promise<void>>;

  constructor(options: ReaderOptions) {
    this.#options = options;
    this.#timers = options.timers ?? systemTimers;
    this.#lane = new Lane({
      limit: "store_waiting_reads",
      max: options.maxWaiting,
      gather: false,
      serve: async (next) => {
        let left = MAX_IN_A_ROW;
        for (let job = next(); job !== undefined; job = --left > 0 ? next() : undefined) await job();
      },
    });
  }

  async read<T>(fn: (tx: ReadTx) => Promise<T>): Promise<T> {
    const captured = capture(fn);
    return new Promise<T>((resolve, reject) => {
      this.#lane.push(async () => {
        const settle = await this.#run(captured).then(
          (value) => () => resolve(value),
          (error: unknown) => () => reject(error),
        );
        const durable = this.#options.durable();
        if (durable === undefined) settle();
        // The next one does not wait for it.
        else durable.then(settle, reject);
      });
    });
  }

  close(): Promise<void> {
    return this.#lane.close();
  }

  async #run<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    const { connection, transactionLimitMs } = this.#options;
    connection.beginRead();
    try {
      return await runWithin(fn, new Transaction(connection), transactionLimitMs, this.#timers);
    } finally {
      connection.endRead();
    }
  }
}
