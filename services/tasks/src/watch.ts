import type { HandlerContext } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import { invalid, type Timers } from "@depute/core";
import { follow, linkSignals } from "@depute/service";
import type { Engine } from "./engine.ts";
import type { TaskRecord } from "./rules/record.ts";
import { isTerminal } from "./rules/state-machine.ts";
import type { WakeUps } from "./wake-ups.ts";

/** Events that a watcher holds in memory at once; each may be as large as a result. */
const WATCH_BATCH = 32;

export interface WatchOptions {
  readonly engine: Engine;
  readonly wakeUps: WakeUps;
  readonly timers: Timers;
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
}

/**
 * The events of a task after a cursor: those recorded, then live ones, to the terminal one.
 *
 * @throws DeputeError INVALID_REQUEST for a cursor beyond the newest event
 */
export async function* watchTask(
  { engine, wakeUps, timers, pollMs, stopping }: WatchOptions,
  { task }: TaskRecord,
  after: bigint,
  context: Pick<HandlerContext, "signal">,
): AsyncGenerator<TaskEvent, void, undefined> {
  if (after > task.lastSequence) {
    throw invalid("after_sequence", `is beyond the newest event, which is ${task.lastSequence}`);
  }
  if (after === task.lastSequence && isTerminal(task.status)) return;
  const link = linkSignals(context.signal, stopping);
  try {
    yield* follow({
      read: (position, limit) => engine.events(task.id, position, limit),
      position: (event) => event.sequence,
      after,
      wake: (listener) => wakeUps.on(task.id, listener),
      pollMs,
      timers,
      signal: link.signal,
      done: (event) => isTerminal(event.status),
      batch: WATCH_BATCH,
    });
  } finally {
    link.release();
  }
}
