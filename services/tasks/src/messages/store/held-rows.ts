import type { ReadTx, WriteTx } from "@depute/store";

/** A task whose result waits for its overseer. */
export interface HeldTask {
  /** The engine's id. */
  readonly taskId: string;
  readonly capTaskId: string;
  /** The agent that handed the result in, without an instance's suffix; and its overseer. */
  readonly holder: string;
  readonly overseer: string;
}

export async function insertHeld(tx: WriteTx, held: HeldTask): Promise<void> {
  await tx.run("INSERT INTO cap_held (task_id, cap_task_id, holder, overseer) VALUES (?, ?, ?, ?)", [
    held.taskId,
    held.capTaskId,
    held.holder,
    held.overseer,
  ]);
}

export async function deleteHeld(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM cap_held WHERE task_id = ?", [taskId]);
}

/** The newest tasks whose held result an agent handed in or oversees; at most `limit` of each. */
export async function heldBy(tx: ReadTx, agentId: string, limit: number): Promise<HeldTask[]> {
  const columns = "task_id, cap_task_id, holder, overseer";
  const found: HeldTask[] = [];
  for (const column of ["holder", "overseer"]) {
    const rows = await tx.all<{ task_id: string; cap_task_id: string; holder: string; overseer: string }>(
      `SELECT ${columns} FROM cap_held WHERE ${column} = ? ORDER BY task_id DESC LIMIT ?`,
      [agentId, limit],
    );
    for (const { task_id: taskId, cap_task_id: capTaskId, holder, overseer } of rows) {
      found.push({ taskId, capTaskId, holder, overseer });
    }
  }
  return found;
}
