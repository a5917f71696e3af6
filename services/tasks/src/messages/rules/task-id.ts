/** Characters that the id of a task may have: it is the task's external id, too. */
export const MAX_TASK_ID = 128;

/** The id of the task that this one is a part of; empty for one that stands for itself. (CAP's worked example: T1.1.1) */
export function parentIdOf(taskId: string): string {
  const dot = taskId.lastIndexOf(".");
  return dot < 0 ? "" : taskId.slice(0, dot);
}

/** The id of the task at the top of the tree. */
export function rootIdOf(taskId: string): string {
  const dot = taskId.indexOf(".");
  return dot < 0 ? taskId : taskId.slice(0, dot);
}

/** How many tasks are above it. */
export function depthOf(taskId: string): number {
  return taskId.split(".").length - 1;
}
