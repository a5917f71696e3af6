import type { Clock, Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { Store } from "@depute/store";
import { deleteTombstones, endedBefore, purgeTask } from "./store/purge-rows.ts";

/** Tasks that are purged in one transaction. */
const BATCH = 50;

/** How often the purger looks, milliseconds. */
const INTERVAL_MS = 60_000;

export interface PurgerOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
  /** How long a task is kept whole after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long it is known after that that it was there, milliseconds. */
  readonly tombstoneMs: number;
}

/** Forgets what ended long ago: first what a task held, later that it was there. */
export class Purger {
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
        .catch((error: unknown) => this.#options.log.error({ err: error }, "tasks could not be purged"))
        .then(() => {
          if (!this.#closed) this.start();
        });
    });
  }

  /** Purges whatever is due. */
  async purge(): Promise<void> {
    const { store, clock, retentionMs, tombstoneMs } = this.#options;
    for (let more = true; more && !this.#closed; ) {
      more = await store.write(async (tx) => {
        const nowMs = clock.now();
        const due = await endedBefore(tx, nowMs - retentionMs, BATCH);
        for (const taskId of due) await purgeTask(tx, taskId, nowMs);
        return due.length === BATCH;
      });
    }
    for (let more = true; more && !this.#closed; ) {
      more = await store.write(async (tx) => {
        return (await deleteTombstones(tx, clock.now() - retentionMs - tombstoneMs, BATCH)) === BATCH;
      });
    }
  }

  /** Resolves when nothing is being done; for tests, whose clocks stand still. */
  async idle(): Promise<void> {
    await this.#working;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }
}
