import { objectOf, objectsOf, type Session, type WorkState, workOf } from "@depute/asp";
import { integer, type ReadTx, type RowOf, row, text, type WriteTx } from "@depute/store";

/** An accepted delegation, and the task that carries it out. */
export interface WorkRow {
  readonly sessionId: string;
  readonly delegationId: string;
  /** The delegation's task; empty before the task is created, and for a delegation that gets no task. */
  readonly taskId: string;
  /** Number of changes of the delegation since its task was last updated; 0 for none. */
  readonly due: number;
}

const ROW = row({ session_id: text, delegation_id: text, task_id: text, due: integer });
type Stored = RowOf<typeof ROW>;

const toRow = ({ session_id, delegation_id, task_id, due }: Stored): WorkRow => ({
  sessionId: session_id,
  delegationId: delegation_id,
  taskId: task_id,
  due,
});

const COLUMNS = "session_id, delegation_id, task_id, due";

/** A delegation that a change of its session affects. */
export interface ChangedWork {
  readonly delegationId: string;
  readonly state: WorkState;
}

/** Returns the delegations that a change of the session accepted, reported or ended. */
export function changedWork(before: Session, after: Session): ChangedWork[] {
  return objectsOf(after, "delegation").flatMap((delegation) => {
    const state = workOf(after, delegation);
    const existing = objectOf(before, delegation.id);
    const was = existing === undefined ? "asked" : workOf(before, existing);
    const isNews = state === "over" ? was === "going" : state !== "asked" && state !== was;
    return isNews ? [{ delegationId: delegation.id, state }] : [];
  });
}

/** Records that a delegation has changed and its task needs an update. */
export async function noteWork(tx: WriteTx, sessionId: string, delegationId: string): Promise<void> {
  await tx.run(
    `INSERT INTO session_works (session_id, delegation_id, task_id, due) VALUES (?, ?, '', 1)
     ON CONFLICT (session_id, delegation_id) DO UPDATE SET due = session_works.due + 1`,
    [sessionId, delegationId],
  );
}

/** Returns up to `limit` delegations whose tasks need an update. */
export async function worksDue(tx: ReadTx, limit: number): Promise<WorkRow[]> {
  const rows = await tx.all(
    ROW,
    `SELECT ${COLUMNS} FROM session_works WHERE due > 0 ORDER BY session_id, delegation_id LIMIT ?`,
    [limit],
  );
  return rows.map(toRow);
}

export async function findWork(
  tx: ReadTx,
  sessionId: string,
  delegationId: string,
): Promise<WorkRow | undefined> {
  const row = await tx.get(
    ROW,
    `SELECT ${COLUMNS} FROM session_works WHERE session_id = ? AND delegation_id = ?`,
    [sessionId, delegationId],
  );
  return row && toRow(row);
}

export async function setTask(
  tx: WriteTx,
  { sessionId, delegationId }: WorkRow,
  taskId: string,
): Promise<void> {
  await tx.run("UPDATE session_works SET task_id = ? WHERE session_id = ? AND delegation_id = ?", [
    taskId,
    sessionId,
    delegationId,
  ]);
}

/** Marks a delegation's task as updated, unless the delegation changed after the row was read. */
export async function seenTo(tx: WriteTx, { sessionId, delegationId, due }: WorkRow): Promise<void> {
  await tx.run("UPDATE session_works SET due = 0 WHERE session_id = ? AND delegation_id = ? AND due = ?", [
    sessionId,
    delegationId,
    due,
  ]);
}
