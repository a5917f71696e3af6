import { fromBinary } from "@bufbuild/protobuf";
import { type Task, TaskSchema, type TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import { fromTimestamp } from "@depute/core";
import { encode } from "@depute/core/encode";
import type { ReadTx, SqlValue, WriteTx } from "@depute/store";
import { nextDeadline } from "../rules/limits.ts";
import type { Settlement, TaskRecord } from "../rules/record.ts";

/** The store counts from the highest priority, so that the first in the queue is the smallest. */
const MOST_URGENT = 9;

/** What a new task is stored with beside its record. */
export interface NewTaskColumns {
  readonly draftDigest: string;
  readonly createMs: number;
}

interface TaskRow {
  task: Uint8Array;
  agent_principal: string;
  output_schema: string;
  queued_ms: number;
  epoch: number;
  holder: string | null;
  lease_expire_ms: number | null;
  attempt_deadline_ms: number | null;
  settled_by: string | null;
  settled_epoch: number | null;
  overseer_principal: string;
  context_expire_ms: number | null;
}

const COLUMNS =
  "task, agent_principal, output_schema, queued_ms, epoch, holder, lease_expire_ms, attempt_deadline_ms, " +
  "settled_by, settled_epoch, overseer_principal, context_expire_ms";

/** A task's record; undefined when there is none. */
export async function readTask(tx: ReadTx, taskId: string): Promise<TaskRecord | undefined> {
  const row = await tx.get<TaskRow>(`SELECT ${COLUMNS} FROM tasks WHERE task_id = ?`, [taskId]);
  return row && toRecord(row);
}

/** Records with their positions, by the rest of a statement; only for conditions that an index answers. */
export async function readRecords(
  tx: ReadTx,
  where: string,
  params: readonly SqlValue[],
): Promise<{ record: TaskRecord; position: ListPosition }[]> {
  const rows = await tx.all<TaskRow & { task_id: string; create_ms: number }>(
    `SELECT task_id, create_ms, ${COLUMNS} FROM tasks WHERE ${where}`,
    params,
  );
  return rows.map((row) => ({
    record: toRecord(row),
    position: { createMs: row.create_ms, taskId: row.task_id },
  }));
}

/** A task as its delegator's own id names it. */
export interface NamedTask {
  readonly task_id: string;
  readonly draft_digest: string;
  readonly status: TaskStatus;
}

/** The task that a delegator gave this id of its own, for one delegate. */
export async function findByExternalId(
  tx: ReadTx,
  delegator: string,
  externalId: string,
  agentId: string,
): Promise<NamedTask | undefined> {
  return tx.get<NamedTask>(
    `SELECT task_id, draft_digest, status FROM tasks
     WHERE delegator = ? AND external_id = ? AND external_id <> '' AND agent_id = ?`,
    [delegator, externalId, agentId],
  );
}

/** Up to `limit` tasks that a delegator gave this id of its own, whoever their delegates are. */
export async function findAllByExternalId(
  tx: ReadTx,
  delegator: string,
  externalId: string,
  limit: number,
): Promise<NamedTask[]> {
  return tx.all<NamedTask>(
    `SELECT task_id, draft_digest, status FROM tasks
     WHERE delegator = ? AND external_id = ? AND external_id <> '' ORDER BY agent_id LIMIT ?`,
    [delegator, externalId, limit],
  );
}

export async function insertTask(tx: WriteTx, record: TaskRecord, columns: NewTaskColumns): Promise<void> {
  const { task } = record;
  await tx.run(
    `INSERT INTO tasks (task_id, delegator, external_id, draft_digest, correlation_id, agent_id, agent_principal,
       capability_id, output_schema, create_ms, status, last_sequence, queued_ms, epoch, next_deadline_ms, task,
       parent_id, root_id, urgency, overseer_id, overseer_principal, holder, lease_expire_ms, attempt_deadline_ms,
       context_expire_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      task.id,
      task.delegator,
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

/** Takes a task's external id away, so that another can have it. What the task itself says of it stays. */
export async function freeExternalId(tx: WriteTx, taskId: string): Promise<void> {
  await tx.run("UPDATE tasks SET external_id = '' WHERE task_id = ?", [taskId]);
}

/**
 * Stores a record that has moved on.
 *
 * @returns false when the stored one is not `before` any more: somebody else was first
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

/** Stores a longer lease; the log is untouched. */
export async function updateLease(tx: WriteTx, after: TaskRecord): Promise<void> {
  await tx.run("UPDATE tasks SET lease_expire_ms = ?, next_deadline_ms = ? WHERE task_id = ? AND epoch = ?", [
    after.hold?.leaseExpireMs ?? null,
    nextDeadline(after)?.atMs ?? null,
    after.task.id,
    after.epoch,
  ]);
}

/** Stores from when on a task that waits may be taken; the log is untouched. */
export async function updateQueued(tx: WriteTx, after: TaskRecord): Promise<void> {
  await tx.run("UPDATE tasks SET queued_ms = ?, next_deadline_ms = ? WHERE task_id = ? AND epoch = ?", [
    after.queuedMs,
    nextDeadline(after)?.atMs ?? null,
    after.task.id,
    after.epoch,
  ]);
}

/** Ids of tasks whose next deadline has passed, the longest overdue first. */
export async function dueTasks(tx: ReadTx, nowMs: number, limit: number): Promise<string[]> {
  const rows = await tx.all<{ task_id: string }>(
    `SELECT task_id FROM tasks WHERE next_deadline_ms IS NOT NULL AND next_deadline_ms <= ?
     ORDER BY next_deadline_ms, task_id LIMIT ?`,
    [nowMs, limit],
  );
  return rows.map((row) => row.task_id);
}

/** The earliest deadline of all tasks, epoch milliseconds. */
export async function earliestDeadline(tx: ReadTx): Promise<number | undefined> {
  const row = await tx.get<{ next_deadline_ms: number }>(
    `SELECT next_deadline_ms FROM tasks WHERE next_deadline_ms IS NOT NULL
     ORDER BY next_deadline_ms, task_id LIMIT 1`,
  );
  return row?.next_deadline_ms;
}

/** Which tasks a list is of. */
export interface ListFilter {
  readonly delegator: string;
  readonly agentId: string;
  readonly correlationId: string;
  readonly statuses: readonly TaskStatus[];
  /** Empty for any. */
  readonly capabilityId: string;
  /** When they were created: from the one on, and before the other; epoch milliseconds, undefined for any time. */
  readonly fromMs: number | undefined;
  readonly beforeMs: number | undefined;
}

/** Whether a task is one of those that a list is of, whoever's they are. */
export function isListed(filter: Omit<ListFilter, "delegator">, task: Task, createMs: number): boolean {
  const { agentId, correlationId, capabilityId, statuses, fromMs, beforeMs } = filter;
  return (
    (agentId === "" || task.agentId === agentId) &&
    (correlationId === "" || task.correlationId === correlationId) &&
    (capabilityId === "" || task.capabilityId === capabilityId) &&
    (statuses.length === 0 || statuses.includes(task.status)) &&
    (fromMs === undefined || createMs >= fromMs) &&
    (beforeMs === undefined || createMs < beforeMs)
  );
}

/** A place in a list, newest first. */
export interface ListPosition {
  readonly createMs: number;
  readonly taskId: string;
}

export interface ListedTask extends ListPosition {
  readonly task: Task;
  /** Whether the task is of the list; one that is not only moves the position on. */
  readonly matches: boolean;
}

/** Up to `limit` tasks after a position, read along one index; those that another filter leaves out do not match. */
export async function listTasks(
  tx: ReadTx,
  filter: ListFilter,
  after: ListPosition | undefined,
  limit: number,
): Promise<ListedTask[]> {
  const [column, value] =
    filter.correlationId !== ""
      ? (["correlation_id", filter.correlationId] as const)
      : filter.agentId !== ""
        ? (["agent_id", filter.agentId] as const)
        : [undefined, ""];
  const rows = await tx.all<{ task_id: string; create_ms: number; task: Uint8Array }>(
    `SELECT task_id, create_ms, task FROM tasks
     WHERE delegator = ?
       ${column === undefined ? "" : `AND ${column} = ?`}
       ${after === undefined ? "" : "AND (create_ms, task_id) < (?, ?)"}
       ${filter.fromMs === undefined ? "" : "AND create_ms >= ?"}
       ${filter.beforeMs === undefined ? "" : "AND create_ms < ?"}
     ORDER BY create_ms DESC, task_id DESC LIMIT ?`,
    [
      filter.delegator,
      ...(column === undefined ? [] : [value]),
      ...(after === undefined ? [] : [after.createMs, after.taskId]),
      ...(filter.fromMs === undefined ? [] : [filter.fromMs]),
      ...(filter.beforeMs === undefined ? [] : [filter.beforeMs]),
      limit,
    ],
  );
  return rows.map(({ task_id, create_ms, task: blob }) => {
    const task = fromBinary(TaskSchema, blob);
    return { taskId: task_id, createMs: create_ms, task, matches: isListed(filter, task, create_ms) };
  });
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
    settled:
      row.settled_by === null
        ? undefined
        : { by: row.settled_by as Settlement, epoch: row.settled_epoch ?? 0 },
  };
}

/** Input and output may be large and do not change with every event: they stand elsewhere. */
function toBlob(task: Task): Uint8Array {
  if (task.input === undefined && task.output === undefined) return encode(TaskSchema, task);
  const { input: _input, output: _output, ...rest } = task;
  return encode(TaskSchema, rest);
}
