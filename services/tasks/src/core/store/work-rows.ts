import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type TaskCompleted, TaskCompletedSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import {
  type ProvidedMessage,
  ProvidedMessageSchema,
} from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Message, MessageSchema } from "@depute/contracts/lf/a2a/v1/a2a_pb";
import { bytes, integer, nullable, type ReadTx, row, text, type WriteTx } from "@depute/store";
import { hasOnlyBegun, type TaskRecord } from "../rules/record.ts";

const CHECKPOINT_ROW = row({ checkpoint: bytes });
const DIGEST_ROW = row({ digest: text });
const INPUT_ROW = row({ number: integer, input: bytes, message: nullable(bytes) });
const MEASURE_ROW = row({ number: integer, bytes: integer });
const RESULT_ROW = row({ result: bytes });

/** Returns the last saved checkpoint; undefined for none. */
export async function readCheckpoint(tx: ReadTx, taskId: string): Promise<Value | undefined> {
  const row = await tx.get(CHECKPOINT_ROW, "SELECT checkpoint FROM task_checkpoints WHERE task_id = ?", [
    taskId,
  ]);
  return row && fromBinary(ValueSchema, row.checkpoint);
}

/** Returns the digest of the saved checkpoint; undefined when there is none. */
export async function readCheckpointDigest(tx: ReadTx, taskId: string): Promise<string | undefined> {
  const row = await tx.get(DIGEST_ROW, "SELECT digest FROM task_checkpoints WHERE task_id = ?", [taskId]);
  return row?.digest;
}

/** Stores a checkpoint in place of the previous one. */
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

/** The delegator's answers to a worker's questions, in order, and the A2A messages that contain answers. */
export interface ProvidedInputs {
  readonly providedInputs: Value[];
  readonly providedMessages: ProvidedMessage[];
}

/** Returns the delegator's answers to the worker's questions, in order. Skips the first `after` answers. */
export async function readProvidedInputs(tx: ReadTx, taskId: string, after = 0): Promise<ProvidedInputs> {
  const rows = await tx.all(
    INPUT_ROW,
    "SELECT number, input, message FROM task_provided_inputs WHERE task_id = ? AND number > ? ORDER BY number",
    [taskId, after],
  );
  return {
    providedInputs: rows.map(({ input }) => fromBinary(ValueSchema, input)),
    providedMessages: rows.flatMap(({ number, message }) =>
      message === null
        ? []
        : [create(ProvidedMessageSchema, { number, message: fromBinary(MessageSchema, message) })],
    ),
  };
}

/** Returns the number of answers of a task, and their total stored size in bytes. */
export async function measureProvidedInputs(tx: ReadTx, taskId: string) {
  const row = await tx.get(
    MEASURE_ROW,
    `SELECT count(*) AS number, coalesce(sum(length(input) + coalesce(length(message), 0)), 0) AS bytes
     FROM task_provided_inputs WHERE task_id = ?`,
    [taskId],
  );
  return row ?? { number: 0, bytes: 0 };
}

export async function insertProvidedInput(
  tx: WriteTx,
  taskId: string,
  number: number,
  { input, message }: { readonly input: Value; readonly message: Message | undefined },
): Promise<void> {
  await tx.run("INSERT INTO task_provided_inputs (task_id, number, input, message) VALUES (?, ?, ?, ?)", [
    taskId,
    number,
    toBinary(ValueSchema, input),
    message === undefined ? null : toBinary(MessageSchema, message),
  ]);
}

/**
 * Deletes an ended task's checkpoint, answers and held result.
 *
 * @param record the task's record before the task ended
 */
export async function deleteWorkState(tx: WriteTx, record: TaskRecord): Promise<void> {
  const { task } = record;
  if (task.checkpointAvailable) tx.send("DELETE FROM task_checkpoints WHERE task_id = ?", [task.id]);
  if (!hasOnlyBegun(record)) tx.send("DELETE FROM task_provided_inputs WHERE task_id = ?", [task.id]);
  if (task.overseerId !== "") await deleteHeldResult(tx, task.id);
}

/** Returns the held result. */
export async function readHeldResult(tx: ReadTx, taskId: string): Promise<TaskCompleted | undefined> {
  const row = await tx.get(RESULT_ROW, "SELECT result FROM task_results WHERE task_id = ?", [taskId]);
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
