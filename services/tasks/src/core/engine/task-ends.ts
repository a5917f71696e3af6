import type { TaskRecord } from "../rules/record.ts";

type Listener = (ended: TaskRecord) => void;

/**
 * Resolves waiting calls with the terminal record of a task, once the record is durable. The calls need no
 * read. The bus wakes calls whose task ends at another replica, and those calls read the record.
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
