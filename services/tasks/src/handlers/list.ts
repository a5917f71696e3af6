import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ListTasksRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { decodePageToken, encodePageToken, pageSize } from "@depute/core";
import type { ReadTx } from "@depute/store";
import { type ListFilter, type ListPosition, listTasks } from "../store/task-rows.ts";

/** Tasks looked at for one page: one whose filter few tasks pass comes short rather than late. */
const MAX_SCANNED = 2000;

/**
 * A page of a delegator's tasks, newest first.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID
 */
export async function listPage(
  tx: ReadTx,
  delegator: string,
  request: ListTasksRequest,
): Promise<{ tasks: Task[]; nextPageToken: string }> {
  const filter: ListFilter = {
    delegator,
    agentId: request.agentId,
    correlationId: request.correlationId,
    statuses: request.statuses.filter((status) => status !== 0),
  };
  const filters = {
    delegator,
    agent: filter.agentId,
    correlation: filter.correlationId,
    statuses: filter.statuses.toSorted((a, b) => a - b),
  };
  const size = pageSize(request.pageSize);
  const tasks: Task[] = [];
  let after = positionOf(decodePageToken(request.pageToken, filters));
  for (let scanned = 0; scanned < MAX_SCANNED && tasks.length < size; ) {
    const rows = await listTasks(tx, filter, after, size);
    for (const row of rows) {
      if (tasks.length === size) break;
      after = { createMs: row.createMs, taskId: row.taskId };
      if (row.matches) tasks.push(row.task);
    }
    scanned += rows.length;
    if (rows.length < size) break;
  }
  if (after === undefined || (await listTasks(tx, filter, after, 1)).length === 0) {
    return { tasks, nextPageToken: "" };
  }
  return { tasks, nextPageToken: encodePageToken([after.createMs, after.taskId], filters) };
}

/** The position that a page token stands for. */
export function positionOf(position: ReturnType<typeof decodePageToken>): ListPosition | undefined {
  const [createMs, taskId] = position ?? [];
  return typeof createMs === "number" && typeof taskId === "string" ? { createMs, taskId } : undefined;
}
