import type { HandlerContext } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { DeputeError, ErrorReason, invalid, type Timers } from "@depute/core";
import { follow, linkSignals, type WakeUps } from "@depute/service";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";
import type { SharedReads } from "./shared-reads.ts";

/** Events that a watcher holds in memory at once; each may be as large as a result. */
const WATCH_BATCH = 32;

/**
 * How many of a stream's ordinary intervals a watcher waits between looks. The bus says itself when it may have lost
 * wake-ups, and thousands that wait for a task to go on must not keep the store busy.
 */
const IDLE_POLLS = 10;

export interface WatchOptions {
  readonly reads: SharedReads;
  readonly wakeUps: WakeUps;
  readonly timers: Timers;
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
}

/**
 * The events of a task after a cursor: those recorded, then live ones, to the terminal one.
 *
 * @throws DeputeError INVALID_REQUEST for a cursor beyond the newest event, EVENTS_PURGED for one before what is kept
 */
export async function* watchTask(
  { reads, wakeUps, timers, pollMs, stopping }: WatchOptions,
  { task }: Pick<TaskRecord, "task">,
  after: bigint,
  context: Pick<HandlerContext, "signal">,
): AsyncGenerator<TaskEvent, void, undefined> {
  if (after > task.lastSequence) {
    throw invalid("after_sequence", `is beyond the newest event, which is ${task.lastSequence}`);
  }
  if (task.purgeTime !== undefined && after < task.lastSequence) throw purged(task);
  if (after === task.lastSequence && isTerminal(task.status)) return;
  const link = linkSignals(context.signal, stopping);
  try {
    yield* follow({
      read: (position, limit) => reads.read(task.id, position, limit),
      position: (event) => event.sequence,
      after,
      wake: (listener) => wakeUps.on(task.id, listener),
      pollMs: IDLE_POLLS * pollMs,
      timers,
      signal: link.signal,
      done: (event) => isTerminal(event.status),
      batch: WATCH_BATCH,
    });
  } finally {
    link.release();
    reads.leave(task.id);
  }
}

function purged({ id, lastSequence }: Task): DeputeError {
  return new DeputeError(ErrorReason.EVENTS_PURGED, "the task's events are no longer kept", {
    metadata: { task: id, first_sequence: String(lastSequence + 1n) },
  });
}
