import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { integer, type ReadTx, row, text } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import type { ListPosition } from "./list-rows.ts";
import { readRecords, readTask } from "./task-rows.ts";

const TASK_ID_ROW = row({ task_id: text });
const NUMBER_ROW = row({ number: integer });

/**
 * Returns the ids of a task's open children. The query selects rows with a next deadline, because only open tasks have
 * one.
 */
export async function openChildren(tx: ReadTx, taskId: string): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    "SELECT task_id FROM tasks WHERE parent_id = ? AND parent_id <> '' AND next_deadline_ms IS NOT NULL",
    [taskId],
  );
  return rows.map((row) => row.task_id);
}

/** Returns the number of children that a task has had. */
export async function countChildren(tx: ReadTx, taskId: string): Promise<number> {
  const row = await tx.get(
    NUMBER_ROW,
    "SELECT count(*) AS number FROM tasks WHERE parent_id = ? AND parent_id <> ''",
    [taskId],
  );
  return row?.number ?? 0;
}

/**
 * Returns the number of open tasks below a root. The query repeats the condition on the next deadline, so that the
 * database uses the index of open tasks.
 */
export async function countOpenInTree(tx: ReadTx, rootTaskId: string): Promise<number> {
  const row = await tx.get(
    NUMBER_ROW,
    `SELECT count(*) AS number FROM tasks
     WHERE root_id = ? AND parent_id <> '' AND next_deadline_ms IS NOT NULL AND next_deadline_ms > 0`,
    [rootTaskId],
  );
  return row?.number ?? 0;
}

/** Returns a task and its ancestors, the root last, with one read per level. */
export async function readLineage(tx: ReadTx, from: TaskRecord): Promise<TaskRecord[]> {
  const lineage = [from];
  for (let at: Task = from.task; at.parentTaskId !== "" && lineage.length <= from.task.depth; ) {
    const above = await readTask(tx, at.parentTaskId);
    if (above === undefined) break;
    lineage.push(above);
    at = above.task;
  }
  return lineage;
}

/** Returns up to `limit` children of a task after a position, newest first. */
export async function listChildren(
  tx: ReadTx,
  taskId: string,
  after: ListPosition | undefined,
  limit: number,
): Promise<{ record: TaskRecord; position: ListPosition }[]> {
  return readRecords(
    tx,
    `parent_id = ? AND parent_id <> '' ${after === undefined ? "" : "AND (create_ms, task_id) < (?, ?)"}
     ORDER BY create_ms DESC, task_id DESC LIMIT ?`,
    [taskId, ...(after === undefined ? [] : [after.createMs, after.taskId]), limit],
  );
}

/** Returns up to `limit` tasks below a root after a position, newest first. */
export async function listBelow(
  tx: ReadTx,
  rootTaskId: string,
  after: ListPosition | undefined,
  limit: number,
): Promise<{ record: TaskRecord; position: ListPosition }[]> {
  return readRecords(
    tx,
    `root_id = ? AND parent_id <> '' ${after === undefined ? "" : "AND (create_ms, task_id) < (?, ?)"}
     ORDER BY create_ms DESC, task_id DESC LIMIT ?`,
    [rootTaskId, ...(after === undefined ? [] : [after.createMs, after.taskId]), limit],
  );
}
