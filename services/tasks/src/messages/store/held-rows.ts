import { type ReadTx, row, text, type WriteTx } from "@depute/store";

const HELD_ROW = row({ task_id: text, cap_task_id: text, holder: text, overseer: text });

/** A task whose result waits for its overseer. */
export interface HeldTask {
  /** The task's id in the task engine. */
  readonly taskId: string;
  readonly capTaskId: string;
  /** The id of the agent that submitted the result, without the suffix of an instance. */
  readonly holder: string;
  /** The id of the holder's overseer. */
  readonly overseer: string;
}

export async function insertHeld(tx: WriteTx, task: HeldTask): Promise<void> {
  await tx.run("INSERT INTO cap_held (task_id, cap_task_id, holder, overseer) VALUES (?, ?, ?, ?)", [
    task.taskId,
    task.capTaskId,
    task.holder,
    task.overseer,
  ]);
}

export async function deleteHeld(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM cap_held WHERE task_id = ?", [taskId]);
}

/**
 * Returns up to `limit` held results that an agent submitted, and up to `limit` that the agent oversees, newest first.
 */
export async function heldBy(tx: ReadTx, agentId: string, limit: number): Promise<HeldTask[]> {
  const columns = "task_id, cap_task_id, holder, overseer";
  const heldTasks: HeldTask[] = [];
  for (const column of ["holder", "overseer"]) {
    const rows = await tx.all(
      HELD_ROW,
      `SELECT ${columns} FROM cap_held WHERE ${column} = ? ORDER BY task_id DESC LIMIT ?`,
      [agentId, limit],
    );
    for (const { task_id: taskId, cap_task_id: capTaskId, holder, overseer } of rows) {
      heldTasks.push({ taskId, capTaskId, holder, overseer });
    }
  }
  return heldTasks;
}
