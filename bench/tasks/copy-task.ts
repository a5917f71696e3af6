import { DatabaseSync } from "node:sqlite";

/** The status of a completed task in the store. */
const COMPLETED = 7;

/**
 * Copies a completed task of a store whose service does not run, with its events, its input and its request. Each copy
 * has a number from `from` to below `to` in its ids.
 */
export function copyTask(file: string, { from, to }: { readonly from: number; readonly to: number }): void {
  const db = new DatabaseSync(file);
  db.exec("PRAGMA synchronous = OFF; BEGIN");
  const taskId = db
    .prepare("SELECT task_id FROM tasks WHERE status = ? AND task_id NOT LIKE '%-copy-%' LIMIT 1")
    .get(COMPLETED)?.task_id as string | undefined;
  if (taskId === undefined) throw new Error("no task is completed");
  for (const table of ["tasks", "task_inputs", "task_events", "task_requests"]) {
    const columns = db.prepare("SELECT name FROM pragma_table_info(?)").all(table) as { name: string }[];
    const values = columns.map(({ name }) =>
      name === "task_id" || name === "request_id" ? `${name} || '-copy-' || n.i` : name,
    );
    db.prepare(
      `WITH RECURSIVE n(i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?)
       INSERT INTO ${table} (${columns.map(({ name }) => name).join(", ")})
       SELECT ${values.join(", ")} FROM ${table}, n WHERE task_id = ?`,
    ).run(from, to, taskId);
  }
  db.exec("COMMIT");
  db.close();
}
