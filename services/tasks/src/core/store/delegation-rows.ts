import { type Task, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { memberOf, type ReadTx, row, text, type WriteTx } from "@depute/store";

const TASK_ID_ROW = row({ taskId: text });
const BLOCK_TASK_ROW = row({ task_id: text });

/** The end of a delegation, which the outbox reports to the tokens service. */
export interface EndedDelegation {
  taskId: string;
  delegationId: string;
  /** The revocation id of the delegation's block. Empty for a task from before this column existed. */
  revocationId: string;
  status: TaskStatus;
  attestationId: string;
}

const ENDED_DELEGATION_ROW = row({
  taskId: text,
  delegationId: text,
  revocationId: text,
  status: memberOf(TaskStatus),
  attestationId: text,
});

/** Stores the delegation under which a task runs. */
export async function insertDelegation(
  tx: WriteTx,
  taskId: string,
  delegationId: string,
  revocationId: string,
): Promise<void> {
  tx.send("INSERT INTO task_delegations (task_id, delegation_id, revocation_id) VALUES (?, ?, ?)", [
    taskId,
    delegationId,
    revocationId,
  ]);
}

/**
 * Records the end of a task under a delegation. The delegation ends with its last open task.
 *
 * @returns whether the outbox must report the end to the tokens service: false while another task under the delegation
 * is open
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

/**
 * Returns the tasks under a delegation's block: at most two open tasks, and at most two ended tasks whose end the
 * tokens service has not received.
 */
export async function tasksUnderDelegation(
  tx: ReadTx,
  revocationId: string,
): Promise<{ open: string[]; ended: string[] }> {
  const select = (place: "IS NULL" | "IS NOT NULL") =>
    tx.all(
      TASK_ID_ROW,
      `SELECT task_id AS "taskId" FROM task_delegations WHERE revocation_id = ? AND place ${place} ORDER BY task_id LIMIT 2`,
      [revocationId],
    );
  const ids = (rows: readonly { taskId: string }[]) => rows.map(({ taskId }) => taskId);
  return { open: ids(await select("IS NULL")), ended: ids(await select("IS NOT NULL")) };
}

/** Returns up to `limit` ends of delegations that the tokens service has not received, oldest first. */
export function firstEnded(tx: ReadTx, limit: number): Promise<EndedDelegation[]> {
  return tx.all(
    ENDED_DELEGATION_ROW,
    `SELECT task_id AS "taskId", delegation_id AS "delegationId", revocation_id AS "revocationId", status,
       attestation_id AS "attestationId"
     FROM task_delegations WHERE place IS NOT NULL ORDER BY place LIMIT ?`,
    [limit],
  );
}

/** Deletes the end of a task's delegation, after its report to the tokens service. */
export async function dropEnded(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_delegations WHERE task_id = ?", [taskId]);
}

/** Stores the revocation ids of the token blocks that a task depends on. */
export async function insertBlocks(
  tx: WriteTx,
  taskId: string,
  revocationIds: readonly string[],
): Promise<void> {
  for (const revocationId of new Set(revocationIds)) {
    await tx.run("INSERT INTO task_blocks (revocation_id, task_id) VALUES (?, ?)", [revocationId, taskId]);
  }
}

/** Returns the ids of open tasks that depend on a block. */
export async function tasksUnderBlock(tx: ReadTx, revocationId: string, limit: number): Promise<string[]> {
  const rows = await tx.all(
    BLOCK_TASK_ROW,
    "SELECT task_id FROM task_blocks WHERE revocation_id = ? ORDER BY task_id LIMIT ?",
    [revocationId, limit],
  );
  return rows.map((row) => row.task_id);
}

/** Deletes the blocks of an ended task, because a revocation can no longer affect the task. */
export async function deleteBlocks(tx: WriteTx, taskId: string): Promise<void> {
  tx.send("DELETE FROM task_blocks WHERE task_id = ?", [taskId]);
}
