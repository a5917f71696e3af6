import { type ReadTx, row, text, type WriteTx } from "@depute/store";
import { deleteContextRows } from "./context-rows.ts";

const TASK_ID_ROW = row({ task_id: text });
const CONTEXT_ID_ROW = row({ context_id: text });

/** Returns the ids of an organization's open tasks. */
export function openTasksOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  return tasksOf(tx, "end_ms IS NULL", organization, limit);
}

/** Returns the ids of an organization's ended tasks and tombstones. */
export function endedTasksOf(tx: ReadTx, organization: string, limit: number): Promise<string[]> {
  return tasksOf(tx, "end_ms IS NOT NULL", organization, limit);
}

async function tasksOf(tx: ReadTx, state: string, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    `SELECT task_id FROM tasks WHERE organization = ? AND organization <> '' AND ${state} ORDER BY task_id LIMIT ?`,
    [organization, limit],
  );
  return rows.map((each) => each.task_id);
}

/**
 * Deletes the row of a purged task. The row for the end of its delegation stays until the tokens service has received
 * the report.
 */
export async function deleteTask(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_delegations WHERE task_id = ? AND place IS NULL", [taskId]);
  await tx.run("DELETE FROM task_requests WHERE task_id = ?", [taskId]);
  await tx.run("DELETE FROM tasks WHERE task_id = ?", [taskId]);
}

/**
 * Deletes an organization's contexts with their data.
 *
 * @returns the ids of the deleted contexts
 */
export async function deleteContextsOf(tx: WriteTx, organization: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    CONTEXT_ID_ROW,
    `SELECT context_id FROM contexts WHERE organization = ? AND organization <> '' ORDER BY context_id LIMIT ?`,
    [organization, limit],
  );
  for (const { context_id: id } of rows) await deleteContextRows(tx, id);
  return rows.map((each) => each.context_id);
}
