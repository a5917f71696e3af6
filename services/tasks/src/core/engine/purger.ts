import type { Clock } from "@depute/core";
import type { Store } from "@depute/store";
import { deleteTombstones, endedBefore, purgeTask } from "../store/purge-rows.ts";
import { RegularPurge, type RegularPurgeOptions } from "./regular-purge.ts";

/** Tasks that are purged in one transaction. */
const BATCH = 50;

export interface PurgerOptions extends RegularPurgeOptions {
  readonly store: Store;
  readonly clock: Clock;
  /** How long a task is kept whole after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long it is known after that that it was there, milliseconds. */
  readonly tombstoneMs: number;
}

/** Forgets what ended long ago: first what a task held, later that it was there. */
export class Purger extends RegularPurge {
  readonly #options: PurgerOptions;

  constructor(options: PurgerOptions) {
    super(options, "tasks");
    this.#options = options;
  }

  /** Purges whatever is due. */
  override async purge(): Promise<void> {
    const { store, clock, retentionMs, tombstoneMs } = this.#options;
    for (let more = true; more && !this.isClosed; ) {
      more = await store.write(async (tx) => {
        const nowMs = clock.now();
        const due = await endedBefore(tx, nowMs - retentionMs, BATCH);
        for (const taskId of due) await purgeTask(tx, taskId, nowMs);
        return due.length === BATCH;
      });
    }
    for (let more = true; more && !this.isClosed; ) {
      more = await store.write(async (tx) => {
        return (await deleteTombstones(tx, clock.now() - retentionMs - tombstoneMs, BATCH)) === BATCH;
      });
    }
  }
}
