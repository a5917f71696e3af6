import type { Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { ReadTx, WriteTx } from "@depute/store";

/** How a delegation ended, to be told to the tokens service. */
export interface EndedDelegation {
  taskId: string;
  delegationId: string;
  /** Names the delegation's block; empty for a task that was created before this was kept. */
  revocationId: string;
  status: TaskStatus;
  attestationId: string;
}

/** Remembers the delegation that a task runs under. */
export async function insertDelegation(
  tx: WriteTx,
  taskId: string,
  delegationId: string,
  revocationId: string,
): Promise<void> {
  await tx.run("INSERT INTO task_delegations (task_id, delegation_id, revocation_id) VALUES (?, ?, ?)", [
    taskId,
    delegationId,
    revocationId,
  ]);
}

/**
 * Notes the end of a task that ran under a delegation. While another task under it is open, the delegation goes on: the
 * last to end says how it ended.
 *
 * @returns whether there is something to tell
 */
export async function endDelegation(tx: WriteTx, task: Task): Promise<boolean> {
  await tx.run(
    `INSERT INTO task_delegations (task_id, delegation_id, revocation_id, status, attestation_id, place)
     SELECT ?, ?, '', ?, ?, COALESCE(MAX(place), 0) + 1 FROM task_delegations WHERE place IS NOT NULL
     ON CONFLICT (task_id) DO UPDATE SET
       status = excluded.status, attestation_id = excluded.attestation_id, place = excluded.place`,
    [task.id, task.delegationId, task.status, task.attestationId],
  );
  const { changes } = await tx.run(
    `DELETE FROM task_delegations WHERE task_id = ? AND EXISTS (
       SELECT 1 FROM task_delegations AS other
       WHERE other.revocation_id = task_delegations.revocation_id AND other.revocation_id <> '' AND other.place IS NULL)`,
    [task.id],
  );
  return changes === 0;
}

/** The tasks under a delegation's block: those that are open, and those whose end is still to be told; two of each at most. */
export async function tasksUnderDelegation(
  tx: ReadTx,
  revocationId: string,
): Promise<{ open: string[]; ended: string[] }> {
  const select = (place: "IS NULL" | "IS NOT NULL") =>
    tx.all<{ taskId: string }>(
      `SELECT task_id AS "taskId" FROM task_delegations WHERE revocation_id = ? AND place ${place} ORDER BY task_id LIMIT 2`,
      [revocationId],
    );
  const ids = (rows: readonly { taskId: string }[]) => rows.map(({ taskId }) => taskId);
  return { open: ids(await select("IS NULL")), ended: ids(await select("IS NOT NULL")) };
}

/** Up to so many ends that are still to be told, the first of them first. */
export function firstEnded(tx: ReadTx, limit: number): Promise<EndedDelegation[]> {
  return tx.all<EndedDelegation>(
    `SELECT task_id AS "taskId", delegation_id AS "delegationId", revocation_id AS "revocationId", status,
       attestation_id AS "attestationId"
     FROM task_delegations WHERE place IS NOT NULL ORDER BY place LIMIT ?`,
    [limit],
  );
}

/** Forgets an end that was told. */
export async function dropEnded(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_delegations WHERE task_id = ?", [taskId]);
}
