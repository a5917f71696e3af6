import type { HandlerContext } from "@connectrpc/connect";
import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Task } from "@depute/contracts/depute/tasks/v1/task_pb";
import { type Clock, DeputeError, ErrorReason, invalid, type Timers } from "@depute/core";
import { follow, linkSignals, type WakeUps } from "@depute/service";
import type { TaskRecord } from "../rules/record.ts";
import { isTerminal } from "../rules/state-machine.ts";

/** Maximum number of events that a watcher holds in memory. Each event may be as large as a result. */
const WATCH_BATCH = 32;

/**
 * The number of poll intervals between two polls of a watcher. The number is high, so that thousands of idle watchers
 * do not load the store. Polls are rarely needed, because the bus reports when wake-ups may be lost.
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
 * Returns the events of a task after a cursor: first the stored events, then live events, up to the terminal
 * event.
 *
 * @throws DeputeError INVALID_REQUEST for a cursor beyond the newest event, EVENTS_PURGED for a cursor before
 * the oldest stored event
 */
export function watchTask(
  { reads, wakeUps, timers, pollMs, stopping }: WatchOptions,
  { task }: Pick<TaskRecord, "task">,
  after: bigint,
  context: Pick<HandlerContext, "signal">,
): AsyncIterableIterator<TaskEvent, void, undefined> {
  if (after > task.lastSequence) {
    throw invalid("after_sequence", `is beyond the newest event, which is ${task.lastSequence}`);
  }
  if (task.purgeTime !== undefined && after < task.lastSequence) throw purged(task);
  if (after === task.lastSequence && isTerminal(task.status)) return NOTHING;
  const link = linkSignals(context.signal, stopping);
  return follow({
    read: (position, limit) => reads.read(task.id, position, limit),
    position: (event) => event.sequence,
    after,
    wake(listener) {
      const stop = wakeUps.on(task.id, listener);
      return () => {
        stop();
        link.release();
        reads.leave(task.id);
      };
    },
    pollMs: IDLE_POLLS * pollMs,
    timers,
    signal: link.signal,
    isLast: (event) => isTerminal(event.status),
    batch: WATCH_BATCH,
  });
}

const NOTHING: AsyncIterableIterator<never, void, undefined> = {
  next: async () => ({ done: true, value: undefined }),
  [Symbol.asyncIterator]: () => NOTHING,
};

function purged({ id, lastSequence }: Task): DeputeError {
  return new DeputeError(
    ErrorReason.EVENTS_PURGED,
    "the platform has purged these events: begin at first_sequence",
    {
      metadata: { task: id, first_sequence: String(lastSequence + 1n) },
    },
  );
}

interface Shared {
  readonly after: bigint;
  readonly limit: number;
  /** The number of the task's wake-ups when the read began. */
  readonly version: number;
  readonly atMs: number;
  readonly events: Promise<TaskEvent[]>;
}

export interface SharedReadsOptions {
  /** The log from which `events` returns up to `limit` events of a task after a sequence. */
  readonly log: { events(taskId: string, after: bigint, limit: number): Promise<TaskEvent[]> };
  readonly wakeUps: WakeUps;
  readonly clock: Clock;
  /** Maximum age of a shared read, in milliseconds. A lost wake-up delays a watcher by up to this time. */
  readonly maxAgeMs: number;
}

/**
 * Shares reads of logs. One read serves all watchers that read a task's log from the same sequence, until the task's
 * next wake-up. The last read of a task stays in memory while the task has watchers.
 */
export class SharedReads {
  readonly #options: SharedReadsOptions;
  readonly #shared = new Map<string, Shared>();

  constructor(options: SharedReadsOptions) {
    this.#options = options;
  }

  /** Returns the number of tasks with a shared read. */
  get size(): number {
    return this.#shared.size;
  }

  /** Returns up to `limit` events of a task after a sequence, in order. */
  async read(taskId: string, after: bigint, limit: number): Promise<TaskEvent[]> {
    const { log, wakeUps, clock, maxAgeMs } = this.#options;
    const version = wakeUps.version(taskId);
    const nowMs = clock.now();
    const sharedWatch = this.#shared.get(taskId);
    const isSame =
      sharedWatch?.after === after && sharedWatch.limit === limit && sharedWatch.version === version;
    if (sharedWatch !== undefined && isSame && nowMs - sharedWatch.atMs < maxAgeMs) return sharedWatch.events;
    const shared = { after, limit, version, atMs: nowMs, events: log.events(taskId, after, limit) };
    // If the read fails, the next watcher reads again.
    shared.events.catch(() => this.#forget(taskId, shared));
    if (version > 0) this.#shared.set(taskId, shared);
    return shared.events;
  }

  /** Drops the shared read of a task if the task has no watcher left. Call this method whenever a watcher leaves. */
  leave(taskId: string): void {
    if (this.#options.wakeUps.version(taskId) === 0) this.#shared.delete(taskId);
  }

  #forget(taskId: string, shared: Shared): void {
    if (this.#shared.get(taskId) === shared) this.#shared.delete(taskId);
  }
}
