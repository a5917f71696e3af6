import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";

/** A worker's hold on a task. */
export interface Hold {
  /** The stream that the task was given out on. */
  readonly holder: string;
  /** When the lease ends without a sign of life, epoch milliseconds. */
  readonly leaseExpireMs: number;
  /** When the attempt has taken too long, epoch milliseconds. */
  readonly attemptDeadlineMs: number;
}

/** The calls by which a worker ends its hold. */
export type Settlement = "complete" | "fail" | "reject" | "release" | "suspend";

/** What is known of a task: its log's fold, and what the log does not say. */
export interface TaskRecord {
  /** The fold of the log. Without the input, which never changes and may be large. */
  readonly task: Task;
  /** The delegate's key; empty for an agent without one. */
  readonly agentPrincipal: string;
  /** Counts the times that the task was handed to a worker; the newest one's number is the fencing epoch. */
  readonly epoch: number;
  /** Present while a worker holds it. */
  readonly hold: Hold | undefined;
  /** Since when a worker may take it, or might have; epoch milliseconds, ahead of the clock while it backs off. */
  readonly queuedMs: number;
  /** When the first of the contexts that it carries expires, epoch milliseconds; undefined without contexts. */
  readonly contextExpireMs: number | undefined;
  /** How the last hold that a worker itself ended was ended, and its epoch; repeating that call is answered again. */
  readonly settled: { readonly by: Settlement; readonly epoch: number } | undefined;
  /** The key of the overseer; empty for one without a key, and where there is no overseer. */
  readonly overseerPrincipal: string;
  /** Names the schema that outputs have to fit; empty for none. */
  readonly outputSchema: string;
}

/** A task's log with nothing in it but that it was created, handed out and begun, at most. */
const BEGINNING = 3n;

/**
 * Whether a task's log is so short that no report, checkpoint or answer can be in it; what is kept of those need not be
 * looked for then. Each of them is an event, and comes after these three.
 */
export function hasOnlyBegun({ task, epoch }: TaskRecord): boolean {
  return epoch <= 1 && task.lastSequence <= BEGINNING;
}
