import type { Clock } from "@depute/core";
import { RegularPurge, type RegularPurgeOptions } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { Engine } from "../engine/engine.ts";
import { withoutContext } from "../rules/advance.ts";
import {
  contextsInMemory,
  deleteContexts,
  deleteExpiredData,
  isInMemory,
  type MemoryPlace,
  noteLost,
  readCarriers,
} from "../store/context-rows.ts";
import type { ContextMemory, HeldSince } from "./context-memory.ts";

/** Maximum number of contexts that one transaction handles. */
const BATCH = 50;

/**
 * Minimum age, in milliseconds, of data without a row before a sweep removes the data. Until then, a transaction may
 * still add the row.
 */
const ORPHAN_MS = 60_000;

export interface ContextKeeperOptions extends RegularPurgeOptions {
  readonly engine: Engine;
  readonly memory: ContextMemory;
  /** Milliseconds for which the store keeps the tombstone of a context. */
  readonly tombstoneMs: number;
}

/**
 * Deletes the data of expired contexts, and their rows after `tombstoneMs`. For contexts that may not be persisted,
 * also records lost data, and removes data without a row from the memory.
 */
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
   * Records which contexts have lost their data, because a process ended or the shared memory lost its values. Ends
   * each task that carries such a context and has never had a worker. Call this method once before dispatch.
   *
   * @throws DeputeError DEPENDENCY_UNAVAILABLE
   */
  async noteLost(): Promise<void> {
    const { memory } = this.#options;
    let after: MemoryPlace | undefined = { expireMs: 0, id: "" };
    while (after !== undefined && !this.isClosed) {
      const from: MemoryPlace = after;
      const places = await this.#store.read((tx) => contextsInMemory(tx, from, BATCH));
      const lostIds = await memory.lostOf(places.map(({ id }) => id));
      if (lostIds.length > 0) await this.#store.write((tx) => this.#endLost(tx, lostIds));
      after = places.length === BATCH ? places.at(-1) : undefined;
    }
  }

  async #endLost(tx: WriteTx, ids: readonly string[]): Promise<void> {
    for (const id of ids) {
      // After the read above, another call may have revoked the context.
      if (!(await isInMemory(tx, id))) continue;
      await noteLost(tx, id);
      for (const taskId of await readCarriers(tx, id)) {
        await this.#options.engine.changeWithin(tx, taskId, (before, nowMs) =>
          // A task that has had a worker stays open, because its first assignment contained the context. The next
          // dispatch checks the contexts again.
          before.epoch > 0 ? { record: before, events: [] } : withoutContext(before, nowMs),
        );
      }
    }
  }

  override async purge(): Promise<void> {
    const { memory, tombstoneMs } = this.#options;
    const deletes = [
      (nowMs: number) => this.#store.write((tx) => deleteExpiredData(tx, nowMs, BATCH)),
      (nowMs: number) => this.#store.write((tx) => deleteContexts(tx, nowMs - tombstoneMs, BATCH)),
    ];
    for (const deleteSome of deletes) {
      while (!this.isClosed && (await deleteSome(this.#clock.now())) === BATCH);
    }
    if (memory.isAway) return;
    await this.noteLost();
    await memory.sweep((held) => this.#orphansOf(held));
  }

  /** Returns the ids of data that has no row. */
  #orphansOf(held: readonly HeldSince[]): Promise<string[]> {
    const beforeMs = this.#clock.now() - ORPHAN_MS;
    return this.#store.read(async (tx) => {
      const orphanIds: string[] = [];
      for (const { id, addMs } of held) {
        if (addMs <= beforeMs && !(await isInMemory(tx, id))) orphanIds.push(id);
      }
      return orphanIds;
    });
  }
}
