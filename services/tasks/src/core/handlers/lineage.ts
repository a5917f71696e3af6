import type { HandlerContext } from "@connectrpc/connect";
import { type Task, TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ListTasksRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { decodePageToken, encodePageToken, pageSize } from "@depute/core";
import { bytesOf, cutPage } from "@depute/service";
import type { TaskRecord } from "../rules/record.ts";
import { outlineOf } from "../rules/tree.ts";
import { isVisible, requireVisible, taskNotFound, type Viewer } from "../rules/visibility.ts";
import { isListed } from "../store/list-rows.ts";
import { readTask } from "../store/task-rows.ts";
import { listBelow, listChildren, readLineage } from "../store/tree-rows.ts";
import { callerOf, type TaskName, type TasksContext, taskIdWithin } from "./context.ts";
import { filterOf, filtersOf, positionOf } from "./list.ts";

/**
 * Returns a task and all tasks above the task, the root first. Of a task that the caller may not see, returns only the
 * outline, without the content.
 */
export async function lineageOf(
  tasks: TasksContext,
  request: TaskName,
  context: HandlerContext,
): Promise<Task[]> {
  const caller = await callerOf(tasks, context);
  return tasks.engine.store.read(async (tx) => {
    const taskId = await taskIdWithin(tx, caller.principal, request);
    const record = await readTask(tx, taskId);
    if (record === undefined) throw taskNotFound(taskId);
    requireVisible(caller, record);
    return (await readLineage(tx, record)).reverse().map((above) => asSeenBy(caller, above));
  });
}

/**
 * Returns a page of the children of a task, or of all tasks below a root, newest first. Of a task that the caller may
 * not see, the page contains only the outline, without the content.
 */
export async function treePage(tasks: TasksContext, caller: Viewer, request: ListTasksRequest) {
  const { parentTaskId, rootTaskId } = request;
  const topId = parentTaskId || rootTaskId;
  const filter = filterOf(request);
  const filters = filtersOf(request, { parent: parentTaskId, root: rootTaskId });
  const size = pageSize(request.pageSize);
  const after = positionOf(decodePageToken(request.pageToken, filters));
  return tasks.engine.store.read(async (tx) => {
    const top = await readTask(tx, topId);
    if (top === undefined) throw taskNotFound(topId);
    requireVisible(caller, top);
    const list = parentTaskId === "" ? listBelow : listChildren;
    const rows = await list(tx, topId, after, size + 1);
    // The filters see only the fields that the caller may see. Otherwise the result would disclose hidden fields.
    const entries = rows.map(({ record, position }) => ({ task: asSeenBy(caller, record), position }));
    const { items: page, more } = cutPage(entries, size, ({ task }) => bytesOf(TaskSchema, task));
    const last = page.at(-1)?.position;
    return {
      tasks: page
        .filter(({ task, position }) => isListed(filter, task, position.createMs))
        .map(({ task }) => task),
      nextPageToken: more && last !== undefined ? encodePageToken([last.createMs, last.taskId], filters) : "",
    };
  });
}

function asSeenBy(viewer: Viewer, record: TaskRecord): Task {
  return isVisible(viewer, record) ? record.task : outlineOf(record.task);
}
