import type { Clock, Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import { deleteExecution, endedExecutions, rejectedExecutions } from "./purge-rows.ts";

/** Executions that are forgotten in one transaction. */
const BATCH = 100;
/** How often the purger looks, milliseconds. */
const INTERVAL_MS = 60_000;
/** An answer to an idempotency key is kept for so long at least, whatever the settings say; milliseconds. */
const SHORTEST_MS = 24 * 3_600_000;

export interface PurgerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** How long an execution is kept after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long a rejected request is, milliseconds. */
  readonly rejectedRetentionMs: number;
}

/** Forgets executions that ended long ago, with their receipts. One whose payment is open is kept. */
export class ExecutionPurger {
  readonly #options: PurgerOptions;
  #cancel: () => void = () => {};
  #working: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: PurgerOptions) {
    this.#options = options;
  }

  start(): void {
    this.#cancel = this.#options.timers.after(INTERVAL_MS, () => {
      this.#working = this.purge()
        .catch((error: unknown) => this.#options.log.error({ err: error }, "executions could not be purged"))
        .then(() => {
          if (!this.#closed) this.start();
        });
    });
  }

  /** Purges whatever is due. */
  async purge(): Promise<void> {
    const { store, clock, retentionMs, rejectedRetentionMs } = this.#options;
    for (let more = true; more && !this.#closed; ) {
      more = await store.write(async (tx) => {
        const before = (keptMs: number) => clock.now() - Math.max(keptMs, SHORTEST_MS);
        const due = [
          ...(await endedExecutions(tx, before(retentionMs), BATCH)),
          ...(await rejectedExecutions(tx, before(rejectedRetentionMs), BATCH)),
        ];
        for (const requestId of new Set(due)) await deleteExecution(tx, requestId);
        return due.length >= BATCH;
      });
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }
}
