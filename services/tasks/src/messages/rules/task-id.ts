/** Maximum length of a CAP task id in characters. The task engine stores this id as the task's external id. */
export const MAX_TASK_ID = 128;

/** Returns the id of the parent task; empty for a root. (In CAP's example, T1.1 is the parent of T1.1.1.) */
export function parentIdOf(taskId: string): string {
  const dot = taskId.lastIndexOf(".");
  return dot < 0 ? "" : taskId.slice(0, dot);
}

/** Returns the id of the root of a task's tree. */
export function rootIdOf(taskId: string): string {
  const dot = taskId.indexOf(".");
  return dot < 0 ? taskId : taskId.slice(0, dot);
}

/** Returns the number of tasks above a task. */
export function depthOf(taskId: string): number {
  return taskId.split(".").length - 1;
}
