import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** The difference between two reads of a list of tasks. */
export interface ListChange {
  /** Tasks that are new in the list or changed, in the order of the list. */
  readonly tasks: Task[];
  /** Ids of tasks that were in the previous list and are not in this list. */
  readonly removedTaskIds: string[];
}

/**
 * The tasks of a list that a client has received. Each event raises its task's sequence, so a comparison of sequences
 * finds changed tasks.
 */
export class FollowedTasks {
  #sequences = new Map<string, bigint>();

  /** Replaces the list. Returns the difference from the previous list. */
  update(tasks: readonly Task[]): ListChange {
    const earlier = this.#sequences;
    this.#sequences = new Map(tasks.map(({ id, lastSequence }) => [id, lastSequence]));
    return {
      tasks: tasks.filter(({ id, lastSequence }) => earlier.get(id) !== lastSequence),
      removedTaskIds: [...earlier.keys()].filter((id) => !this.#sequences.has(id)),
    };
  }
}
