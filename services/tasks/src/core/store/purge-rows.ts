import { create, toBinary } from "@bufbuild/protobuf";
import { TaskSchema } from "@depute/contracts/depute/tasks/v1/task_pb";
import { toTimestamp } from "@depute/core";
import { type ReadTx, row, text, type WriteTx } from "@depute/store";
import { readTask } from "./task-rows.ts";

const TASK_ID_ROW = row({ task_id: text });

/** Returns the ids of tasks that ended before a time and are not yet purged, the oldest end first. */
export async function endedBefore(tx: ReadTx, endMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    `SELECT task_id FROM tasks WHERE end_ms IS NOT NULL AND purged = 0 AND end_ms <= ?
     ORDER BY end_ms, task_id LIMIT ?`,
    [endMs, limit],
  );
  return rows.map((row) => row.task_id);
}

/** The tables of a task's content. A purge deletes the rows that have the task's id. */
const PARTS = [
  "task_events",
  "task_inputs",
  "task_checkpoints",
  "task_provided_inputs",
  "task_results",
  "task_reports",
  "task_commands",
  "task_blocks",
  "task_spend",
  "task_contexts",
  "task_artifacts",
  "task_artifact_bytes",
];

/** Deletes the content of an ended task. The row stays as a tombstone with the task's id and status. */
export async function purgeTask(tx: WriteTx, taskId: string, nowMs: number): Promise<void> {
  const record = await readTask(tx, taskId);
  if (record === undefined) return;
  for (const table of PARTS) await tx.run(`DELETE FROM ${table} WHERE task_id = ?`, [taskId]);
  const { task } = record;
  const { reason = "", retryable = false } = task.failure ?? {};
  const tombstone = create(TaskSchema, {
    id: task.id,
    externalId: task.externalId,
    correlationId: task.correlationId,
    delegator: task.delegator,
    agentId: task.agentId,
    capabilityId: task.capabilityId,
    parentTaskId: task.parentTaskId,
    rootTaskId: task.rootTaskId,
    depth: task.depth,
    overseerId: task.overseerId,
    status: task.status,
    attempt: task.attempt,
    lastSequence: task.lastSequence,
    purgeTime: toTimestamp(nowMs),
    ...(task.failure && { failure: { reason, retryable } }),
    ...(task.createTime && { createTime: task.createTime }),
    ...(task.updateTime && { updateTime: task.updateTime }),
    ...(task.endTime && { endTime: task.endTime }),
  });
  const blob = toBinary(TaskSchema, tombstone);
  await tx.run("UPDATE tasks SET purged = 1, task = ? WHERE task_id = ?", [blob, taskId]);
  if (record.outputSchema !== "") await forgetSchema(tx, record.outputSchema);
}

/** Deletes an output schema if no task uses it. */
async function forgetSchema(tx: WriteTx, digest: string): Promise<void> {
  await tx.run(
    `DELETE FROM output_schemas WHERE digest = ? AND NOT EXISTS (
       SELECT 1 FROM tasks WHERE output_schema = ? AND output_schema <> '' AND purged = 0)`,
    [digest, digest],
  );
}

/**
 * Deletes the tombstones of tasks that ended before a time.
 *
 * @returns the number of deleted tombstones
 */
export async function deleteTombstones(tx: WriteTx, endMs: number, limit: number): Promise<number> {
  const rows = await tx.all(
    TASK_ID_ROW,
    `SELECT task_id FROM tasks WHERE end_ms IS NOT NULL AND purged = 1 AND end_ms <= ?
     ORDER BY end_ms, task_id LIMIT ?`,
    [endMs, limit],
  );
  for (const { task_id: taskId } of rows) {
    await tx.run("DELETE FROM task_requests WHERE task_id = ?", [taskId]);
    await tx.run("DELETE FROM tasks WHERE task_id = ?", [taskId]);
  }
  return rows.length;
}
