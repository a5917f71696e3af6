import type { Clock } from "@depute/core";
import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { Store } from "@depute/store";
import type { Engine } from "../engine/engine.ts";
import { withoutContext } from "../rules/advance.ts";
import {
  deleteContexts,
  deleteExpiredData,
  lostContexts,
  noteLost,
  readCarriers,
} from "../store/context-rows.ts";
import type { ContextMemory } from "./context-memory.ts";

/** Maximum number of contexts that one transaction deletes or ends. */
const BATCH = 50;

export interface ContextKeeperOptions extends RegularPurgeOptions {
  readonly engine: Engine;
  readonly memory: ContextMemory;
  /** Milliseconds for which the tombstone of a context is stored. */
  readonly tombstoneMs: number;
}

/** Deletes the data of contexts that have expired, and deletes their rows later. */
export class ContextKeeper extends RegularPurge {
  readonly #options: ContextKeeperOptions;
  readonly #store: Store;
  readonly #clock: Clock;

  constructor(options: ContextKeeperOptions) {
    super(options, "contexts");
    this.#options = options;
    this.#store = options.engine.store;
    this.#clock = options.clock;
  }

  /**
   * Records which contexts were lost with the memory of the previous process. Ends the pending tasks that need a lost
   * context, because no worker can do them. Call it once, before dispatch.
   */
  async noteLost(): Promise<void> {
    const { engine, memory } = this.#options;
    for (;;) {
      const ids = await this.#store.read((tx) => lostContexts(tx, memory, BATCH));
      if (ids.length === 0) return;
      await this.#store.write(async (tx) => {
        for (const id of ids) {
          await noteLost(tx, id);
          for (const taskId of await readCarriers(tx, id)) {
            await engine.changeWithin(tx, taskId, (before, nowMs) =>
              // A task that a worker once had may continue without the context, because its first assignment carried
              // the context.
              before.epoch > 0 ? { record: before, events: [] } : withoutContext(before, nowMs),
            );
          }
        }
      });
    }
  }

  override async purge(): Promise<void> {
    const { memory, tombstoneMs } = this.#options;
    const deletes = [
      (nowMs: number) => this.#store.write((tx) => deleteExpiredData(tx, memory, nowMs, BATCH)),
      (nowMs: number) => this.#store.write((tx) => deleteContexts(tx, nowMs - tombstoneMs, BATCH)),
    ];
    for (const deleteSome of deletes) {
      while (!this.isClosed && (await deleteSome(this.#clock.now())) === BATCH);
    }
  }
}
