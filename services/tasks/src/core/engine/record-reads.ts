import type { Timers } from "@depute/core";
import type { Store } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import { readTask } from "../store/task-rows.ts";

/** Maximum number of records that one transaction reads. */
const MAX_TOGETHER = 64;

interface Gathered {
  readonly taskIds: Set<string>;
  readonly records: Promise<ReadonlyMap<string, TaskRecord | undefined>>;
}

/**
 * Reads records of tasks. On a shared store, one transaction reads the records that callers request in the same turn of
 * the event loop, so that these calls share one round trip. The transaction begins after the calls, so each caller sees
 * every earlier commit.
 */
export class RecordReads {
  readonly #store: Store;
  readonly #timers: Timers;
  #gathering: Gathered | undefined;

  constructor(store: Store, timers: Timers) {
    this.#store = store;
    this.#timers = timers;
  }

  /** Returns the stored record of a task; undefined if the task does not exist. */
  async find(taskId: string): Promise<TaskRecord | undefined> {
    if (this.#store.sharing === undefined) return this.#store.read((tx) => readTask(tx, taskId));
    const { taskIds, records } = this.#gather();
    taskIds.add(taskId);
    return (await records).get(taskId);
  }

  #gather(): Gathered {
    if (this.#gathering !== undefined && this.#gathering.taskIds.size < MAX_TOGETHER) return this.#gathering;
    const taskIds = new Set<string>();
    this.#gathering = { taskIds, records: this.#read(taskIds) };
    return this.#gathering;
  }

  async #read(taskIds: ReadonlySet<string>): Promise<ReadonlyMap<string, TaskRecord | undefined>> {
    await this.#timers.nextTurn();
    if (this.#gathering?.taskIds === taskIds) this.#gathering = undefined;
    return this.#store.read(async (tx) => {
      const reading = [...taskIds].map(async (taskId) => [taskId, await readTask(tx, taskId)] as const);
      return new Map(await Promise.all(reading));
    });
  }
}
