import type { TaskRecord } from "../rules/record.ts";

type Listener = (ended: TaskRecord) => void;

/**
 * Tells those who wait for a task's end what it ended as, so that they need not read it. They are told once that is
 * durable. One process has the tables, so no task ends without it.
 */
export class TaskEnds {
  readonly #waiting = new Map<string, Set<Listener>>();

  /** Calls `listener` when a task ends, unless the answer is called before. */
  on(taskId: string, listener: Listener): () => void {
    const waiting = this.#waiting.get(taskId) ?? new Set();
    waiting.add(listener);
    this.#waiting.set(taskId, waiting);
    return () => {
      waiting.delete(listener);
      if (waiting.size === 0 && this.#waiting.get(taskId) === waiting) this.#waiting.delete(taskId);
    };
  }

  tell(ended: TaskRecord): void {
    const waiting = this.#waiting.get(ended.task.id);
    if (waiting === undefined) return;
    this.#waiting.delete(ended.task.id);
    for (const listener of waiting) listener(ended);
  }
}
