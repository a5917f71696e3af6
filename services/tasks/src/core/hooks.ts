import type { CallOptions } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { TaskFailure } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { CompleteAssignmentRequest } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { ReadTx, WriteTx } from "@depute/store";
import type { TaskRecord } from "./rules/record.ts";

/** What a transaction does to a task. */
export interface TaskChange {
  /** Undefined for a task that is new. */
  readonly before: TaskRecord | undefined;
  readonly after: TaskRecord;
  /** The events that brought it there, in order; one at least. */
  readonly events: readonly TaskEvent[];
}

/** An observer of task changes. It runs in the transaction, after the rows are written; an error rolls the change back. */
export type TaskObserver = (tx: WriteTx, change: TaskChange) => Promise<void>;

/** Checks a worker's result; a failure fails the task in its place. */
export type ResultCheck = (
  record: TaskRecord,
  request: CompleteAssignmentRequest,
  options: CallOptions,
) => Promise<TaskFailure | undefined>;

/** Hears in its transaction that a task is purged to a tombstone. */
export type PurgeListener = (tx: WriteTx, taskId: string) => Promise<void>;

/** Whether a task may be dispatched although a context that it carries is gone. */
export type MissingContextRule = (tx: ReadTx, taskId: string) => Promise<boolean>;
