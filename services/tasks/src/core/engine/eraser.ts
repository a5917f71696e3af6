import type { Store, WriteTx } from "@depute/store";
import type { EraseListener } from "../hooks.ts";
import { cancelIfOpen } from "../rules/cancel.ts";
import { deleteContextsOf, deleteTask, endedTasksOf, openTasksOf } from "../store/organization-rows.ts";
import { purgeTask } from "../store/purge-rows.ts";
import type { Engine } from "./engine.ts";
import type { Purger } from "./purger.ts";

/** The result of one step of an erasure. */
export interface Erased {
  readonly deleted: number;
  /** Whether a later step has further records to delete. */
  readonly more: boolean;
}

export interface EraserOptions {
  readonly engine: Engine;
  readonly store: Store;
  readonly purger: Pick<Purger, "listeners">;
  readonly memory: { remove(contextId: string): void };
}

/** Erases the records of an organization, in short transactions. Each repeated call deletes further records. */
export class Eraser {
  readonly #options: EraserOptions;
  readonly #listeners: EraseListener[] = [];

  constructor(options: EraserOptions) {
    this.#options = options;
  }

  /** Registers a listener that erases another module's records of an organization. */
  onErase(listener: EraseListener): void {
    this.#listeners.push(listener);
  }

  /**
   * Cancels open tasks of an organization, and deletes ended tasks, contexts and the records of modules.
   *
   * @param limit maximum number of records of each kind
   */
  async erase(organization: string, reason: string, limit: number): Promise<Erased> {
    const { store, memory } = this.#options;
    return store.write(async (tx) => {
      const cancelled = await this.#cancel(tx, organization, reason, limit);
      const tasks = await this.#deleteTasks(tx, organization, limit);
      const contexts = await deleteContextsOf(tx, organization, limit);
      tx.afterCommit(() => {
        for (const id of contexts) memory.remove(id);
      });
      let deleted = tasks + contexts.length;
      let more = cancelled > 0 || tasks === limit || contexts.length === limit;
      for (const listener of this.#listeners) {
        const count = await listener(tx, organization, limit);
        deleted += count;
        more ||= count === limit;
      }
      return { deleted, more };
    });
  }

  async #cancel(tx: WriteTx, organization: string, reason: string, limit: number): Promise<number> {
    const open = await openTasksOf(tx, organization, limit);
    for (const taskId of open) {
      await this.#options.engine.changeWithin(tx, taskId, (before, nowMs) =>
        cancelIfOpen(before, reason, nowMs),
      );
    }
    return open.length;
  }

  async #deleteTasks(tx: WriteTx, organization: string, limit: number): Promise<number> {
    const { engine, purger } = this.#options;
    const ended = await endedTasksOf(tx, organization, limit);
    for (const taskId of ended) {
      await purgeTask(tx, taskId, engine.clock.now());
      for (const listener of purger.listeners) await listener(tx, taskId);
      await deleteTask(tx, taskId);
    }
    return ended.length;
  }
}
