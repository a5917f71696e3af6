import { objectOf, objectsOf, type Session, type WorkState, workOf } from "@depute/asp";
import type { ReadTx, WriteTx } from "@depute/store";

/** A delegation whose task is to be looked after. */
export interface WorkRow {
  readonly sessionId: string;
  readonly delegationId: string;
  /** Empty before there is one. */
  readonly taskId: string;
  /** Counts what happened to the delegation; 0 once all of it has been seen to. */
  readonly due: number;
}

interface Stored {
  session_id: string;
  delegation_id: string;
  task_id: string;
  due: number;
}

const toRow = ({ session_id, delegation_id, task_id, due }: Stored): WorkRow => ({
  sessionId: session_id,
  delegationId: delegation_id,
  taskId: task_id,
  due,
});

const COLUMNS = "session_id, delegation_id, task_id, due";

/** A delegation whose work stands otherwise than before. */
export interface ChangedWork {
  readonly delegationId: string;
  readonly state: WorkState;
}

/** The delegations whose work a change of a session began, had reported, or ended. */
export function changedWork(before: Session, after: Session): ChangedWork[] {
  return objectsOf(after, "delegation").flatMap((delegation) => {
    const state = workOf(after, delegation);
    const known = objectOf(before, delegation.id);
    const was = known === undefined ? "asked" : workOf(before, known);
    const isNews = state === "over" ? was === "going" : state !== "asked" && state !== was;
    return isNews ? [{ delegationId: delegation.id, state }] : [];
  });
}

/** Notes that something happened to a delegation. */
export async function noteWork(tx: WriteTx, sessionId: string, delegationId: string): Promise<void> {
  await tx.run(
    `INSERT INTO session_works (session_id, delegation_id, task_id, due) VALUES (?, ?, '', 1)
     ON CONFLICT (session_id, delegation_id) DO UPDATE SET due = session_works.due + 1`,
    [sessionId, delegationId],
  );
}

/** The first delegations to look after. */
export async function worksDue(tx: ReadTx, limit: number): Promise<WorkRow[]> {
  const rows = await tx.all<Stored>(
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
  const row = await tx.get<Stored>(
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

/** Nothing is due any more, unless something has happened since the row was read. */
export async function seenTo(tx: WriteTx, { sessionId, delegationId, due }: WorkRow): Promise<void> {
  await tx.run("UPDATE session_works SET due = 0 WHERE session_id = ? AND delegation_id = ? AND due = ?", [
    sessionId,
    delegationId,
    due,
  ]);
}
