import { fromBinary } from "@bufbuild/protobuf";
import { type Task, TaskSchema, type TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { bytes, integer, type ReadTx, row, text } from "@depute/store";

const LISTED_ROW = row({ task_id: text, create_ms: integer, task: bytes });

/** The filters of a list of tasks. */
export interface ListFilter {
  readonly delegator: string;
  readonly agentId: string;
  readonly correlationId: string;
  readonly statuses: readonly TaskStatus[];
  /** Id of the capability; empty for any. */
  readonly capabilityId: string;
  /** The creation times: from `fromMs` on and before `beforeMs`, epoch milliseconds; undefined for no limit. */
  readonly fromMs: number | undefined;
  readonly beforeMs: number | undefined;
}

/** Whether a task passes every filter of a list except the delegator. */
export function isListed(filter: Omit<ListFilter, "delegator">, task: Task, createMs: number): boolean {
  const { agentId, correlationId, capabilityId, statuses, fromMs, beforeMs } = filter;
  return (
    (agentId === "" || task.agentId === agentId) &&
    (correlationId === "" || task.correlationId === correlationId) &&
    (capabilityId === "" || task.capabilityId === capabilityId) &&
    (statuses.length === 0 || statuses.includes(task.status)) &&
    (fromMs === undefined || createMs >= fromMs) &&
    (beforeMs === undefined || createMs < beforeMs)
  );
}

/** A position in a list that is sorted by creation time, newest first. */
export interface ListPosition {
  readonly createMs: number;
  readonly taskId: string;
}

export interface ListedTask extends ListPosition {
  readonly task: Task;
  /**
   * Whether the task passes the filters. The page omits a task that fails them, but the next page begins after that
   * task.
   */
  readonly matches: boolean;
}

/**
 * Reads up to `limit` tasks after a position along one index. For a filter that the index does not cover, sets
 * `matches` instead of leaving tasks out.
 */
export async function listTasks(
  tx: ReadTx,
  filter: ListFilter,
  after: ListPosition | undefined,
  limit: number,
): Promise<ListedTask[]> {
  const [column, value] =
    filter.correlationId !== ""
      ? (["correlation_id", filter.correlationId] as const)
      : filter.agentId !== ""
        ? (["agent_id", filter.agentId] as const)
        : [undefined, ""];
  const rows = await tx.all(
    LISTED_ROW,
    `SELECT task_id, create_ms, task FROM tasks
     WHERE delegator = ?
       ${column === undefined ? "" : `AND ${column} = ?`}
       ${after === undefined ? "" : "AND (create_ms, task_id) < (?, ?)"}
       ${filter.fromMs === undefined ? "" : "AND create_ms >= ?"}
       ${filter.beforeMs === undefined ? "" : "AND create_ms < ?"}
     ORDER BY create_ms DESC, task_id DESC LIMIT ?`,
    [
      filter.delegator,
      ...(column === undefined ? [] : [value]),
      ...(after === undefined ? [] : [after.createMs, after.taskId]),
      ...(filter.fromMs === undefined ? [] : [filter.fromMs]),
      ...(filter.beforeMs === undefined ? [] : [filter.beforeMs]),
      limit,
    ],
  );
  return rows.map(({ task_id, create_ms, task: blob }) => {
    const task = fromBinary(TaskSchema, blob);
    return { taskId: task_id, createMs: create_ms, task, matches: isListed(filter, task, create_ms) };
  });
}
