import type { ReadTx, WriteTx } from "@depute/store";

/** Remembers which blocks of tokens a task depends on. */
export async function insertBlocks(
  tx: WriteTx,
  taskId: string,
  revocationIds: readonly string[],
): Promise<void> {
  for (const revocationId of new Set(revocationIds)) {
    await tx.run("INSERT INTO task_blocks (revocation_id, task_id) VALUES (?, ?)", [revocationId, taskId]);
  }
}

/** Ids of open tasks that depend on a block. */
export async function tasksUnderBlock(tx: ReadTx, revocationId: string, limit: number): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>(
    "SELECT task_id FROM task_blocks WHERE revocation_id = ? ORDER BY task_id LIMIT ?",
    [revocationId, limit],
  );
  return rows.map((row) => row.task_id);
}

/** Forgets the blocks of a task that has ended: there is nothing left to take back. */
export async function deleteBlocks(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_blocks WHERE task_id = ?", [taskId]);
}
