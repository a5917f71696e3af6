import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { ReadTx, WriteTx } from "@depute/store";

/** What a task is created with and never changes. */
export interface TaskInput {
  readonly input: Value | undefined;
  /** Empty for none. */
  readonly workerToken: string;
}

const NOTHING: TaskInput = { input: undefined, workerToken: "" };

/** Stores what there is; a task without input and token has no row. */
export async function insertInput(tx: WriteTx, taskId: string, given: TaskInput): Promise<void> {
  if (given.input === undefined && given.workerToken === "") return;
  await tx.run("INSERT INTO task_inputs (task_id, input, worker_token) VALUES (?, ?, ?)", [
    taskId,
    given.input === undefined ? null : toBinary(ValueSchema, given.input),
    given.workerToken,
  ]);
}

export async function readInput(tx: ReadTx, taskId: string): Promise<TaskInput> {
  const row = await tx.get<{ input: Uint8Array | null; worker_token: string }>(
    "SELECT input, worker_token FROM task_inputs WHERE task_id = ?",
    [taskId],
  );
  if (row === undefined) return NOTHING;
  const input = row.input === null ? undefined : fromBinary(ValueSchema, row.input);
  return { input, workerToken: row.worker_token };
}

/** The token that a task is worked on under; empty for none. */
export async function readWorkerToken(tx: ReadTx, taskId: string): Promise<string> {
  const row = await tx.get<{ worker_token: string }>(
    "SELECT worker_token FROM task_inputs WHERE task_id = ?",
    [taskId],
  );
  return row?.worker_token ?? "";
}

/** Keeps a schema under its digest; the same one is kept once. */
export async function insertOutputSchema(tx: WriteTx, digest: string, schema: Uint8Array): Promise<void> {
  await tx.run("INSERT INTO output_schemas (digest, schema) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING", [
    digest,
    schema,
  ]);
}

/** A schema as JSON text in UTF-8. */
export async function readOutputSchema(tx: ReadTx, digest: string): Promise<Uint8Array | undefined> {
  const row = await tx.get<{ schema: Uint8Array }>("SELECT schema FROM output_schemas WHERE digest = ?", [
    digest,
  ]);
  return row?.schema;
}
