import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { type TaskEvent, TaskEventSchema } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { type Task, TaskSchema, TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import {
  bytes,
  integer,
  memberOf,
  nullable,
  oneOf,
  type ReadTx,
  type RowOf,
  row,
  type SqlValue,
  text,
  type WriteTx,
} from "@depute/store";
import { nextDeadline } from "../rules/limits.ts";
import type { Settlement, TaskRecord } from "../rules/record.ts";
import type { ListPosition } from "./list-rows.ts";

const TASK_ID_ROW = row({ task_id: text });
const NEXT_DEADLINE_ROW = row({ next_deadline_ms: integer });
const INPUT_ROW = row({ input: nullable(bytes), worker_token: text });
const WORKER_TOKEN_ROW = row({ worker_token: text });
const SCHEMA_ROW = row({ schema: bytes });

/**
 * The highest priority. The store writes this number minus a task's priority, so an ascending order begins with the
 * most urgent task.
 */
const MOST_URGENT = 9;

/** Columns of a new task that are not in its record. */
export interface NewTaskColumns {
  readonly draftDigest: string;
  readonly createMs: number;
}

const TASK = {
  task: bytes,
  agent_principal: text,
  output_schema: text,
  queued_ms: integer,
  epoch: integer,
  holder: nullable(text),
  lease_expire_ms: nullable(integer),
  attempt_deadline_ms: nullable(integer),
  settled_by: nullable(oneOf<Settlement>("complete", "fail", "reject", "release", "suspend")),
  settled_epoch: nullable(integer),
  overseer_principal: text,
  context_expire_ms: nullable(integer),
};
const TASK_ROW = row(TASK);
const POSITIONED_ROW = row({ ...TASK, task_id: text, create_ms: integer });
type TaskRow = RowOf<typeof TASK_ROW>;

const COLUMNS =
  "task, agent_principal, output_schema, queued_ms, epoch, holder, lease_expire_ms, attempt_deadline_ms, " +
  "settled_by, settled_epoch, overseer_principal, context_expire_ms";

/** Returns a task's record; undefined if the task does not exist. */
export async function readTask(tx: ReadTx, taskId: string): Promise<TaskRecord | undefined> {
  const row = await tx.get(TASK_ROW, `SELECT ${COLUMNS} FROM tasks WHERE task_id = ?`, [taskId]);
  return row && toRecord(row);
}

/**
 * Reads records and their list positions.
 *
 * @param where the part of the statement after WHERE; use only conditions that an index covers
 */
export async function readRecords(
  tx: ReadTx,
  where: string,
  params: readonly SqlValue[],
): Promise<{ record: TaskRecord; position: ListPosition }[]> {
  const rows = await tx.all(
    POSITIONED_ROW,
    `SELECT task_id, create_ms, ${COLUMNS} FROM tasks WHERE ${where}`,
    params,
  );
  return rows.map((row) => ({
    record: toRecord(row),
    position: { createMs: row.create_ms, taskId: row.task_id },
  }));
}

/** A task that a delegator's external id names. */
export interface NamedTask {
  readonly task_id: string;
  readonly draft_digest: string;
  readonly status: TaskStatus;
}

const NAMED_TASK_ROW = row({ task_id: text, draft_digest: text, status: memberOf(TaskStatus) });

/** Finds a delegator's task by external id and delegate. */
export async function findByExternalId(
  tx: ReadTx,
  delegator: string,
  externalId: string,
  agentId: string,
): Promise<NamedTask | undefined> {
  return tx.get(
    NAMED_TASK_ROW,
    `SELECT task_id, draft_digest, status FROM tasks
     WHERE delegator = ? AND external_id = ? AND external_id <> '' AND agent_id = ?`,
    [delegator, externalId, agentId],
  );
}

/** Finds up to `limit` tasks of a delegator by external id, for any delegate. */
export async function findAllByExternalId(
  tx: ReadTx,
  delegator: string,
  externalId: string,
  limit: number,
): Promise<NamedTask[]> {
  return tx.all(
    NAMED_TASK_ROW,
    `SELECT task_id, draft_digest, status FROM tasks
     WHERE delegator = ? AND external_id = ? AND external_id <> '' ORDER BY agent_id LIMIT ?`,
    [delegator, externalId, limit],
  );
}

export async function insertTask(tx: WriteTx, record: TaskRecord, columns: NewTaskColumns): Promise<void> {
  const { task } = record;
  tx.send(
    `INSERT INTO tasks (task_id, delegator, organization, external_id, draft_digest, correlation_id, agent_id, agent_principal,
       capability_id, output_schema, create_ms, status, last_sequence, queued_ms, epoch, next_deadline_ms, task,
       parent_id, root_id, urgency, overseer_id, overseer_principal, holder, lease_expire_ms, attempt_deadline_ms,
       context_expire_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      task.id,
      task.delegator,
      task.organization,
      task.externalId,
      columns.draftDigest,
      task.correlationId,
      task.agentId,
      record.agentPrincipal,
      task.capabilityId,
      record.outputSchema,
      columns.createMs,
      task.status,
      task.lastSequence,
      record.queuedMs,
      record.epoch,
      nextDeadline(record)?.atMs ?? null,
      toBlob(task),
      task.parentTaskId,
      task.rootTaskId,
      MOST_URGENT - task.priority,
      task.overseerId,
      record.overseerPrincipal,
      record.hold?.holder ?? null,
      record.hold?.leaseExpireMs ?? null,
      record.hold?.attemptDeadlineMs ?? null,
      record.contextExpireMs ?? null,
    ],
  );
}

/**
 * Clears the column of a task's external id, so that another task can use the id. The stored Task message keeps the id.
 */
export async function freeExternalId(tx: WriteTx, taskId: string): Promise<void> {
  tx.send("UPDATE tasks SET external_id = '' WHERE task_id = ?", [taskId]);
}

/**
 * Writes a changed record.
 *
 * @returns false, without a change, if the stored record is not `before`
 */
export async function updateTask(tx: WriteTx, before: TaskRecord, after: TaskRecord): Promise<boolean> {
  const { task, hold, settled } = after;
  const { changes } = await tx.run(
    `UPDATE tasks SET status = ?, last_sequence = ?, queued_ms = ?, epoch = ?, holder = ?, lease_expire_ms = ?,
       attempt_deadline_ms = ?, settled_by = ?, settled_epoch = ?, next_deadline_ms = ?, end_ms = ?, task = ?
     WHERE task_id = ? AND last_sequence = ? AND epoch = ?`,
    [
      task.status,
      task.lastSequence,
      after.queuedMs,
      after.epoch,
      hold?.holder ?? null,
      hold?.leaseExpireMs ?? null,
      hold?.attemptDeadlineMs ?? null,
      settled?.by ?? null,
      settled?.epoch ?? null,
      nextDeadline(after)?.atMs ?? null,
      task.endTime === undefined ? null : fromTimestamp(task.endTime),
      toBlob(task),
      task.id,
      before.task.lastSequence,
      before.epoch,
    ],
  );
  return changes === 1;
}

/** Stores an extended lease without an event. */
export async function updateLease(tx: WriteTx, after: TaskRecord): Promise<void> {
  tx.send("UPDATE tasks SET lease_expire_ms = ?, next_deadline_ms = ? WHERE task_id = ? AND epoch = ?", [
    after.hold?.leaseExpireMs ?? null,
    nextDeadline(after)?.atMs ?? null,
    after.task.id,
    after.epoch,
  ]);
}

/** Stores the time from which workers may take a pending task. Appends no event. */
export async function updateQueued(tx: WriteTx, after: TaskRecord): Promise<void> {
  tx.send("UPDATE tasks SET queued_ms = ?, next_deadline_ms = ? WHERE task_id = ? AND epoch = ?", [
    after.queuedMs,
    nextDeadline(after)?.atMs ?? null,
    after.task.id,
    after.epoch,
  ]);
}

/** Returns the ids of tasks whose next deadline has passed, the longest overdue first. */
export async function dueTasks(tx: ReadTx, nowMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all(
    TASK_ID_ROW,
    `SELECT task_id FROM tasks WHERE next_deadline_ms IS NOT NULL AND next_deadline_ms <= ?
     ORDER BY next_deadline_ms, task_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => row.task_id);
}

/** Returns the earliest deadline of all tasks, epoch milliseconds; undefined without an open task. */
export async function earliestDeadline(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get(
    NEXT_DEADLINE_ROW,
    `SELECT next_deadline_ms FROM tasks WHERE next_deadline_ms IS NOT NULL
     ORDER BY next_deadline_ms, task_id LIMIT 1`,
  );
  return row?.next_deadline_ms;
}

function toRecord(row: TaskRow): TaskRecord {
  return {
    task: fromBinary(TaskSchema, row.task),
    agentPrincipal: row.agent_principal,
    outputSchema: row.output_schema,
    overseerPrincipal: row.overseer_principal,
    queuedMs: row.queued_ms,
    contextExpireMs: row.context_expire_ms ?? undefined,
    epoch: row.epoch,
    hold:
      row.holder === null
        ? undefined
        : {
            holder: row.holder,
            leaseExpireMs: row.lease_expire_ms ?? 0,
            attemptDeadlineMs: row.attempt_deadline_ms ?? 0,
          },
    settled: row.settled_by === null ? undefined : { by: row.settled_by, epoch: row.settled_epoch ?? 0 },
  };
}

/**
 * Encodes a task without its input and output. Other rows store the input and the output, because both may be
 * large and seldom change.
 */
function toBlob(task: Task): Uint8Array {
  if (task.input === undefined && task.output === undefined) return toBinary(TaskSchema, task);
  const { input: _input, output: _output, ...rest } = task;
  return toBinary(TaskSchema, rest);
}

/** The large values of a task that its creation fixes. */
export interface TaskInput {
  readonly input: Value | undefined;
  /** The worker token; empty for none. */
  readonly workerToken: string;
}

const NOTHING: TaskInput = { input: undefined, workerToken: "" };

/** Stores the input and the worker token, if there are any. A task with neither has no row. */
export async function insertInput(tx: WriteTx, taskId: string, provided: TaskInput): Promise<void> {
  if (provided.input === undefined && provided.workerToken === "") return;
  tx.send("INSERT INTO task_inputs (task_id, input, worker_token) VALUES (?, ?, ?)", [
    taskId,
    provided.input === undefined ? null : toBinary(ValueSchema, provided.input),
    provided.workerToken,
  ]);
}

export async function readInput(tx: ReadTx, taskId: string): Promise<TaskInput> {
  const row = await tx.get(INPUT_ROW, "SELECT input, worker_token FROM task_inputs WHERE task_id = ?", [
    taskId,
  ]);
  if (row === undefined) return NOTHING;
  const input = row.input === null ? undefined : fromBinary(ValueSchema, row.input);
  return { input, workerToken: row.worker_token };
}

/** Returns a task's worker token; empty for none. */
export async function readWorkerToken(tx: ReadTx, taskId: string): Promise<string> {
  const row = await tx.get(WORKER_TOKEN_ROW, "SELECT worker_token FROM task_inputs WHERE task_id = ?", [
    taskId,
  ]);
  return row?.worker_token ?? "";
}

/** Stores a schema under its digest, once for each digest. */
export async function insertOutputSchema(tx: WriteTx, digest: string, schema: Uint8Array): Promise<void> {
  tx.send("INSERT INTO output_schemas (digest, schema) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING", [
    digest,
    schema,
  ]);
}

/** Returns a schema as JSON text in UTF-8; undefined if the store has no schema with this digest. */
export async function readOutputSchema(tx: ReadTx, digest: string): Promise<Uint8Array | undefined> {
  const row = await tx.get(SCHEMA_ROW, "SELECT schema FROM output_schemas WHERE digest = ?", [digest]);
  return row?.schema;
}

const EVENT_ROW = row({ event: bytes });

/** Appends events to the logs of their tasks, in the given order. */
export async function insertEvents(tx: WriteTx, events: readonly TaskEvent[]): Promise<void> {
  if (events.length === 0) return;
  const rows = events.map(() => "(?, ?, ?)").join(", ");
  tx.send(
    `INSERT INTO task_events (task_id, sequence, event) VALUES ${rows}`,
    events.flatMap((event) => [event.taskId, event.sequence, toBinary(TaskEventSchema, event)]),
  );
}

/** Returns up to `limit` events of a task's log after a sequence, in order. */
export async function readEvents(
  tx: ReadTx,
  taskId: string,
  after: bigint,
  limit: number,
): Promise<TaskEvent[]> {
  const rows = await tx.all(
    EVENT_ROW,
    "SELECT event FROM task_events WHERE task_id = ? AND sequence > ? ORDER BY sequence LIMIT ?",
    [taskId, after, limit],
  );
  return rows.map((row) => fromBinary(TaskEventSchema, row.event));
}
