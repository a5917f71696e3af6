import { type Task, TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ListTasksRequest } from "@depute/contracts/depute/tasks/v1/task_service_pb";
import { decodePageToken, encodePageToken, fromTimestamp, pageSize } from "@depute/core";
import { AnswerRoom, bytesOf } from "@depute/service";
import type { ReadTx } from "@depute/store";
import { type ListFilter, type ListPosition, listTasks } from "../store/list-rows.ts";

/** The filters of a list of a delegator's tasks. */
type ListFilters = Pick<
  ListTasksRequest,
  "agentId" | "correlationId" | "capabilityId" | "statuses" | "createdFrom" | "createdBefore"
>;

/**
 * Maximum number of tasks that the store reads for one page. If few of these tasks pass the filter, the page is short.
 * The limit bounds the time of a response.
 */
const MAX_SCANNED = 2000;

/**
 * Returns a page of a delegator's tasks, newest first.
 *
 * @throws DeputeError PAGE_TOKEN_INVALID
 */
export async function listPage(
  tx: ReadTx,
  delegator: string,
  request: ListFilters & Pick<ListTasksRequest, "pageSize" | "pageToken">,
): Promise<{ tasks: Task[]; nextPageToken: string }> {
  const filter: ListFilter = { delegator, ...filterOf(request) };
  const filters = filtersOf(request, { delegator });
  const size = pageSize(request.pageSize);
  const tasks: Task[] = [];
  let after = positionOf(decodePageToken(request.pageToken, filters));
  const room = new AnswerRoom();
  let isFull = false;
  for (let scanned = 0; scanned < MAX_SCANNED && !isFull; ) {
    const rows = await listTasks(tx, filter, after, size);
    for (const row of rows) {
      isFull = tasks.length === size || (row.matches && !room.takes(bytesOf(TaskSchema, row.task)));
      if (isFull) break;
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

/** Returns the filters of a request, without the delegator. */
export function filterOf(request: ListFilters): Omit<ListFilter, "delegator"> {
  const { agentId, correlationId, capabilityId, statuses, createdFrom, createdBefore } = request;
  return {
    agentId,
    correlationId,
    capabilityId,
    statuses: statuses.filter((status) => status !== 0),
    fromMs: createdFrom && fromTimestamp(createdFrom),
    beforeMs: createdBefore && fromTimestamp(createdBefore),
  };
}

/** Returns the filter values to which a page token is bound. */
export function filtersOf(request: ListFilters, scope: Record<string, string>) {
  const { statuses, ...rest } = filterOf(request);
  return { ...scope, ...rest, statuses: statuses.toSorted((a, b) => a - b) };
}

/** Returns the position in a page token. */
export function positionOf(position: ReturnType<typeof decodePageToken>): ListPosition | undefined {
  const [createMs, taskId] = position ?? [];
  return typeof createMs === "number" && typeof taskId === "string" ? { createMs, taskId } : undefined;
}
