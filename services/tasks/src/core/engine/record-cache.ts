import type { WriteTx } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";

/**
 * Open tasks that were written last, as the store's writer left them: what is changed several times in a row is not read
 * and decoded each time. It is ahead of what is durable, so writes build upon it, and nobody is told of it before they
 * are. One process has the tables, so nobody else changes them.
 */
export class RecordCache {
  readonly #max: number;
  readonly #records = new Map<string, TaskRecord>();

  /** @param max records held */
  constructor(max: number) {
    this.#max = max;
  }

  get(taskId: string): TaskRecord | undefined {
    return this.#records.get(taskId);
  }

  /** Notes what a transaction has written; until it has succeeded, the task is read from the store. */
  put(tx: WriteTx, record: TaskRecord): void {
    const { id, status } = record.task;
    this.#records.delete(id);
    // A transaction may write a task more than once: the last one is what there is.
    tx.afterRun(
      () => (isTerminal(status) ? this.#records.delete(id) : this.#hold(id, record)),
      () => this.#records.delete(id),
    );
  }

  #hold(id: string, record: TaskRecord): void {
    this.#records.delete(id);
    this.#records.set(id, record);
    if (this.#records.size <= this.#max) return;
    for (const oldest of this.#records.keys()) {
      this.#records.delete(oldest);
      return;
    }
  }
}
