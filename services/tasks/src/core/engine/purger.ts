import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { Store } from "@depute/store";
import type { PurgeListener } from "../hooks.ts";
import { deleteTombstones, endedBefore, purgeTask } from "../store/purge-rows.ts";

/** Tasks that are purged in one transaction. */
const BATCH = 50;

export interface PurgerOptions extends RegularPurgeOptions {
  readonly store: Store;
  /** How long a task is kept whole after its end, milliseconds. */
  readonly retentionMs: number;
  /** How long it is known after that that it was there, milliseconds. */
  readonly tombstoneMs: number;
}

/** Forgets what ended long ago: first what a task held, later that it was there. */
export class Purger extends RegularPurge {
  readonly #options: PurgerOptions;
  readonly #listeners: PurgeListener[] = [];

  constructor(options: PurgerOptions) {
    super(options, "tasks");
    this.#options = options;
  }

  /** Has rows of other modules go with a task. */
  onPurge(listener: PurgeListener): void {
    this.#listeners.push(listener);
  }

  /** Purges whatever is due. */
  override async purge(): Promise<void> {
    const { store, clock, retentionMs, tombstoneMs } = this.#options;
    for (let more = true; more && !this.isClosed; ) {
      more = await store.write(async (tx) => {
        const nowMs = clock.now();
        const due = await endedBefore(tx, nowMs - retentionMs, BATCH);
        for (const taskId of due) {
          await purgeTask(tx, taskId, nowMs);
          for (const listener of this.#listeners) await listener(tx, taskId);
        }
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
