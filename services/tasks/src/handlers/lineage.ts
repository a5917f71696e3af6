import type { HandlerContext } from "@connectrpc/connect";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ListTasksRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { decodePageToken, encodePageToken, pageSize } from "@depute/core";
import type { TaskRecord } from "../rules/record.ts";
import { outlineOf } from "../rules/tree.ts";
import { isVisible, requireVisible, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { readTask } from "../store/task-rows.ts";
import { listChildren, readLineage } from "../store/tree-rows.ts";
import { callerOf, type TasksContext } from "./context.ts";
import { positionOf } from "./list.ts";

/** The tasks above a task, the root first, and itself. */
export async function lineageOf(
  tasks: TasksContext,
  taskId: string,
  context: HandlerContext,
): Promise<Task[]> {
  const caller = await callerOf(tasks, context);
  return tasks.engine.store.read(async (tx) => {
    const record = await readTask(tx, taskId);
    if (record === undefined) throw taskNotFound(taskId);
    requireVisible(caller, record);
    return (await readLineage(tx, record)).reverse().map((above) => asSeenBy(caller, above));
  });
}

/** A page of the parts of a task that the caller may see, newest first. */
export async function childrenPage(
  tasks: TasksContext,
  caller: Viewer,
  { parentTaskId, agentId, correlationId, statuses, pageSize: asked, pageToken }: ListTasksRequest,
) {
  const filters = { parent: parentTaskId, agent: agentId, correlation: correlationId, statuses };
  const size = pageSize(asked);
  const after = positionOf(decodePageToken(pageToken, filters));
  return tasks.engine.store.read(async (tx) => {
    const parent = await readTask(tx, parentTaskId);
    if (parent === undefined) throw taskNotFound(parentTaskId);
    requireVisible(caller, parent);
    const rows = await listChildren(tx, parentTaskId, after, size + 1);
    const page = rows.slice(0, size);
    const last = page.at(-1)?.position;
    const matches = ({ record: { task } }: { record: TaskRecord }) =>
      (agentId === "" || task.agentId === agentId) &&
      (correlationId === "" || task.correlationId === correlationId) &&
      (statuses.length === 0 || statuses.includes(task.status));
    return {
      tasks: page.filter(matches).map(({ record }) => asSeenBy(caller, record)),
      nextPageToken:
        rows.length > size && last !== undefined
          ? encodePageToken([last.createMs, last.taskId], filters)
          : "",
    };
  });
}

function asSeenBy(viewer: Viewer, record: TaskRecord): Task {
  return isVisible(viewer, record) ? record.task : outlineOf(record.task);
}
