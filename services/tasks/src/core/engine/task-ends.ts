import type { TaskRecord } from "../rules/record.ts";

type Listener = (ended: TaskRecord) => void;

/**
 * Passes the terminal record of a task to waiting calls, once the record is durable. If the task ends in this process,
 * these calls read nothing from the store. If it ends at another replica, the bus wakes the waiting calls, and they
 * read the record.
 */
export class TaskEnds {
  readonly #waiting = new Map<string, Set<Listener>>();

  /** Calls `listener` when a task ends. The returned function removes the listener. */
  on(taskId: string, listener: Listener): () => void {
    const waiting = this.#waiting.get(taskId) ?? new Set();
    waiting.add(listener);
    this.#waiting.set(taskId, waiting);
    return () => {
      waiting.delete(listener);
      if (waiting.size === 0 && this.#waiting.get(taskId) === waiting) this.#waiting.delete(taskId);
    };
  }

  notify(ended: TaskRecord): void {
    const waiting = this.#waiting.get(ended.task.id);
    if (waiting === undefined) return;
    this.#waiting.delete(ended.task.id);
    for (const listener of waiting) listener(ended);
  }
}
