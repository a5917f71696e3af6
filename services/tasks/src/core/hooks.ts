import type { CallOptions } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { TaskFailure } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { CompleteAssignmentRequest } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import type { TaskRecord } from "./rules/record.ts";

/** A change of a task in a transaction. */
export interface TaskChange {
  /** The task before the change; undefined for a new task. */
  readonly before: TaskRecord | undefined;
  readonly after: TaskRecord;
  /** The events of the change, in order; at least one. */
  readonly events: readonly TaskEvent[];
}

/** The name of an event: the case of its payload. */
export type TaskEventName = TaskEvent["payload"]["case"];

/**
 * An observer of task changes. The engine calls it in the transaction, after it has written the rows. If the observer
 * throws, the transaction rolls back.
 */
export type TaskObserver = (tx: WriteTx, change: TaskChange) => Promise<void>;

/** Checks a worker's result. If the check returns a failure, the task fails instead of completing. */
export type ResultCheck = (
  record: TaskRecord,
  request: CompleteAssignmentRequest,
  options: CallOptions,
) => Promise<TaskFailure | undefined>;

/** Called in the transaction that replaces a task by its tombstone. */
export type PurgeListener = (tx: WriteTx, taskId: string) => Promise<void>;

/**
 * Called in the transaction that erases records of an organization. The listener deletes at most `limit` records and
 * returns their number.
 */
export type EraseListener = (tx: WriteTx, organization: string, limit: number) => Promise<number>;

/** Whether the queue may dispatch a task that has lost one of its contexts. */
export type MissingContextRule = (tx: ReadTx, taskId: string) => Promise<boolean>;
