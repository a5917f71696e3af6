import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { WatchTasksResponse } from "@depute/contracts/depute/tasks/v1/task_service_pb";

/**
 * Applies a response of WatchTasks to the tasks that a page shows.
 *
 * @param isFirst whether the response is the first of its stream; its tasks replace the shown tasks
 * @returns the tasks, newest first
 */
export function applyChange(
  shown: readonly Task[],
  { tasks, removedTaskIds }: Pick<WatchTasksResponse, "tasks" | "removedTaskIds">,
  isFirst: boolean,
): readonly Task[] {
  if (isFirst) return tasks;
  if (tasks.length === 0 && removedTaskIds.length === 0) return shown;
  const byId = new Map(shown.map((task) => [task.id, task]));
  for (const task of tasks) byId.set(task.id, task);
  for (const id of removedTaskIds) byId.delete(id);
  return [...byId.values()].sort((one, other) => createMs(other) - createMs(one));
}

function createMs({ createTime }: Task): number {
  return createTime === undefined ? 0 : timestampMs(createTime);
}
