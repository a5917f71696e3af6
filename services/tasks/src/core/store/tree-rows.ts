import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx } from "@depute/store";
import type { TaskRecord } from "../rules/record.ts";
import type { ListPosition } from "./task-rows.ts";
import { readRecords, readTask } from "./task-rows.ts";

/** Ids of the parts of a task that have not ended. A task that has not ended has a deadline, always. */
export async function openChildren(tx: ReadTx, taskId: string): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>(
    "SELECT task_id FROM tasks WHERE parent_id = ? AND parent_id <> '' AND next_deadline_ms IS NOT NULL",
    [taskId],
  );
  return rows.map((row) => row.task_id);
}

/** How many parts a task has had. */
export async function countChildren(tx: ReadTx, taskId: string): Promise<number> {
  const row = await tx.get<{ number: number }>(
    "SELECT count(*) AS number FROM tasks WHERE parent_id = ? AND parent_id <> ''",
    [taskId],
  );
  return row?.number ?? 0;
}

/** How many tasks below a root have not ended: they have a deadline, which is said so that their own index is taken. */
export async function countOpenInTree(tx: ReadTx, rootTaskId: string): Promise<number> {
  const row = await tx.get<{ number: number }>(
    `SELECT count(*) AS number FROM tasks
     WHERE root_id = ? AND parent_id <> '' AND next_deadline_ms IS NOT NULL AND next_deadline_ms > 0`,
    [rootTaskId],
  );
  return row?.number ?? 0;
}

/** A task and those above it, the root last; as many as there are steps up to the root. */
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

/** Up to `limit` parts of a task after a position, newest first. */
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

/** Up to `limit` tasks below a root after a position, newest first. */
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
