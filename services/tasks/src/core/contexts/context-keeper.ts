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

/** Contexts that one transaction sees to. */
const BATCH = 50;

export interface ContextKeeperOptions extends RegularPurgeOptions {
  readonly engine: Engine;
  readonly memory: ContextMemory;
  /** How long the platform knows of a context after its time, milliseconds. */
  readonly tombstoneMs: number;
}

/** Deletes the data of contexts whose time has passed, and later their rows. */
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
   * Notes which contexts were in the memory of the process before this one, and ends the work that waits for a worker with one of
   * them: no worker can do it. To be called once, before anything is handed out.
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
              // What a worker had once may go on without: it was handed out with its context.
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
