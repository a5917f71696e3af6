import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** A worker's hold on a task: the holder and the time limits of the lease. */
export interface Hold {
  /** The id of the stream, or the name of the worker, that got the task. */
  readonly holder: string;
  /** The time at which the lease expires unless a heartbeat extends it, epoch milliseconds. */
  readonly leaseExpireMs: number;
  /** The time at which the attempt's limit passes, epoch milliseconds. */
  readonly attemptDeadlineMs: number;
}

/** The calls by which a worker ends its lease. */
export type Settlement = "complete" | "fail" | "reject" | "release" | "suspend";

/** A task's stored state: the result of the events in the task's log, and fields that the log does not contain. */
export interface TaskRecord {
  /** The task as its events produce it, without the input. The input never changes and may be large. */
  readonly task: Task;
  /** The delegate's key; empty for an agent without a key. */
  readonly agentPrincipal: string;
  /** The number of the task's dispatches, which is the epoch of the newest lease. */
  readonly epoch: number;
  /** The hold of the current worker; undefined if no worker has the task. */
  readonly hold: Hold | undefined;
  /**
   * The time from which a worker may take the task, in epoch milliseconds. During a backoff, this time is in the
   * future.
   */
  readonly queuedMs: number;
  /** The time at which the first context of the task expires, epoch milliseconds; undefined without contexts. */
  readonly contextExpireMs: number | undefined;
  /**
   * The last call by which a worker ended its lease, and the epoch of that lease. A replay of the call succeeds and
   * changes nothing. Undefined if no worker has ended a lease of the task.
   */
  readonly settled: { readonly by: Settlement; readonly epoch: number } | undefined;
  /** The overseer's key; empty for no overseer, or for an overseer without a key. */
  readonly overseerPrincipal: string;
  /** The digest of the schema that outputs must fit; empty for none. */
  readonly outputSchema: string;
}

/** Number of events in a log that contains only creation, dispatch and start. */
const BEGINNING = 3n;

/**
 * Whether the log can contain only creation, dispatch and start. The store then has no reports, checkpoints or answers
 * of the task.
 */
export function hasOnlyBegun({ task, epoch }: TaskRecord): boolean {
  return epoch <= 1 && task.lastSequence <= BEGINNING;
}
