import type { WriteTx } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";

/**
 * Caches the newest records of open tasks, so that consecutive changes need no read. A cached record may be newer than
 * the durable record. Changes use cached records; responses do not. A commit of another replica clears the cache before
 * the next write of this process.
 */
export class RecordCache {
  readonly #max: number;
  readonly #records = new Map<string, TaskRecord>();

  /** @param max maximum number of records */
  constructor(max: number) {
    this.#max = max;
  }

  get(taskId: string): TaskRecord | undefined {
    return this.#records.get(taskId);
  }

  clear(): void {
    this.#records.clear();
  }

  /** Caches a record at the end of its transaction. Until then, other readers of the task use the store. */
  store(tx: WriteTx, record: TaskRecord): void {
    const { id, status } = record.task;
    this.#records.delete(id);
    // A transaction may write a task more than once. Only the last record of the task stays in the cache.
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
