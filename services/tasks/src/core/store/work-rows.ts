import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type TaskCompleted, TaskCompletedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import { hasOnlyBegun, type TaskRecord } from "../rules/record.ts";

/** What was saved for another attempt to go on from. */
export async function readCheckpoint(tx: ReadTx, taskId: string): Promise<Value | undefined> {
  const row = await tx.get<{ checkpoint: Uint8Array }>(
    "SELECT checkpoint FROM task_checkpoints WHERE task_id = ?",
    [taskId],
  );
  return row && fromBinary(ValueSchema, row.checkpoint);
}

/** The digest of the saved checkpoint; undefined when there is none. */
export async function readCheckpointDigest(tx: ReadTx, taskId: string): Promise<string | undefined> {
  const row = await tx.get<{ digest: string }>("SELECT digest FROM task_checkpoints WHERE task_id = ?", [
    taskId,
  ]);
  return row?.digest;
}

/** Keeps a checkpoint in place of the one before. */
export async function writeCheckpoint(
  tx: WriteTx,
  taskId: string,
  digest: string,
  checkpoint: Value,
): Promise<void> {
  await tx.run(
    `INSERT INTO task_checkpoints (task_id, digest, checkpoint) VALUES (?, ?, ?)
     ON CONFLICT (task_id) DO UPDATE SET digest = excluded.digest, checkpoint = excluded.checkpoint`,
    [taskId, digest, toBinary(ValueSchema, checkpoint)],
  );
}

/** What a delegator answered to the worker's questions, after the first `after` ones, in order. */
export async function readProvidedInputs(tx: ReadTx, taskId: string, after = 0): Promise<Value[]> {
  const rows = await tx.all<{ input: Uint8Array }>(
    "SELECT input FROM task_provided_inputs WHERE task_id = ? AND number > ? ORDER BY number",
    [taskId, after],
  );
  return rows.map((row) => fromBinary(ValueSchema, row.input));
}

/** How many answers there are, and how long they are together as they are stored. */
export async function measureProvidedInputs(tx: ReadTx, taskId: string) {
  const row = await tx.get<{ number: number; bytes: number }>(
    `SELECT count(*) AS number, coalesce(sum(length(input)), 0) AS bytes FROM task_provided_inputs WHERE task_id = ?`,
    [taskId],
  );
  return row ?? { number: 0, bytes: 0 };
}

export async function insertProvidedInput(
  tx: WriteTx,
  taskId: string,
  number: number,
  input: Value,
): Promise<void> {
  await tx.run("INSERT INTO task_provided_inputs (task_id, number, input) VALUES (?, ?, ?)", [
    taskId,
    number,
    toBinary(ValueSchema, input),
  ]);
}

/**
 * Forgets what only further attempts would need.
 *
 * @param record of the task before it ended
 */
export async function deleteWorkState(tx: WriteTx, record: TaskRecord): Promise<void> {
  const { task } = record;
  if (task.checkpointAvailable) await tx.run("DELETE FROM task_checkpoints WHERE task_id = ?", [task.id]);
  if (!hasOnlyBegun(record)) await tx.run("DELETE FROM task_provided_inputs WHERE task_id = ?", [task.id]);
  if (task.overseerId !== "") await deleteHeldResult(tx, task.id);
}

/** The result that is held for review. */
export async function readHeldResult(tx: ReadTx, taskId: string): Promise<TaskCompleted | undefined> {
  const row = await tx.get<{ result: Uint8Array }>("SELECT result FROM task_results WHERE task_id = ?", [
    taskId,
  ]);
  return row && fromBinary(TaskCompletedSchema, row.result);
}

export async function insertHeldResult(tx: WriteTx, taskId: string, result: TaskCompleted): Promise<void> {
  await tx.run("INSERT INTO task_results (task_id, result) VALUES (?, ?)", [
    taskId,
    toBinary(TaskCompletedSchema, result),
  ]);
}

export async function deleteHeldResult(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("DELETE FROM task_results WHERE task_id = ?", [taskId]);
}
