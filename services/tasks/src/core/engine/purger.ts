import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { Store } from "@depute/store";
import type { PurgeListener } from "../hooks.ts";
import { deleteTombstones, endedBefore, purgeTask } from "../store/purge-rows.ts";

/** Maximum number of tasks that one transaction purges. */
const BATCH = 50;

export interface PurgerOptions extends RegularPurgeOptions {
  readonly store: Store;
  /** Milliseconds for which the store keeps a whole task after its end. */
  readonly retentionMs: number;
  /** Milliseconds for which the store keeps a tombstone. */
  readonly tombstoneMs: number;
}

/** Purges ended tasks: first deletes their content, later their tombstones. */
export class Purger extends RegularPurge {
  readonly #options: PurgerOptions;
  readonly #listeners: PurgeListener[] = [];

  constructor(options: PurgerOptions) {
    super(options, "tasks");
    this.#options = options;
  }

  /** Registers a listener that deletes another module's rows of a purged task. */
  onPurge(listener: PurgeListener): void {
    this.#listeners.push(listener);
  }

  /** The registered listeners. */
  get listeners(): readonly PurgeListener[] {
    return this.#listeners;
  }

  /** Purges the tasks and tombstones whose retention time has passed. */
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
