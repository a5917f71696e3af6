import type { TaskEvent } from "@depute/contracts/depute/tasks/v1/task_event_pb";
import type { Clock } from "@depute/core";
import type { WakeUps } from "@depute/service";

interface Shared {
  readonly after: bigint;
  readonly limit: number;
  /** The wake-ups of the task before the read. */
  readonly version: number;
  readonly atMs: number;
  readonly events: Promise<TaskEvent[]>;
}

export interface SharedReadsOptions {
  readonly read: (taskId: string, after: bigint, limit: number) => Promise<TaskEvent[]>;
  readonly wakeUps: WakeUps;
  readonly clock: Clock;
  /** How long a read is shared at most, milliseconds; a wake-up that was lost costs this much more. */
  readonly maxAgeMs: number;
}

/**
 * Reads of logs that watchers share: however many wait for the next event of a task, it is read once. A read is shared
 * only until the task's next wake-up, so nobody is given what was there before it was woken. It holds the last read of
 * each task that is watched, and no longer than it is.
 */
export class SharedReads {
  readonly #options: SharedReadsOptions;
  readonly #shared = new Map<string, Shared>();

  constructor(options: SharedReadsOptions) {
    this.#options = options;
  }

  /** How many tasks' reads are held. */
  get size(): number {
    return this.#shared.size;
  }

  /** Up to `limit` events of a task after a sequence, in order. */
  async read(taskId: string, after: bigint, limit: number): Promise<TaskEvent[]> {
    const { read, wakeUps, clock, maxAgeMs } = this.#options;
    const version = wakeUps.version(taskId);
    const nowMs = clock.now();
    const known = this.#shared.get(taskId);
    const isSame = known?.after === after && known.limit === limit && known.version === version;
    if (known !== undefined && isSame && nowMs - known.atMs < maxAgeMs) return known.events;
    const shared = { after, limit, version, atMs: nowMs, events: read(taskId, after, limit) };
    // One that failed is not shared with those who come later.
    shared.events.catch(() => this.#forget(taskId, shared));
    if (version > 0) this.#shared.set(taskId, shared);
    return shared.events;
  }

  /** To be called when a watcher goes. */
  leave(taskId: string): void {
    if (this.#options.wakeUps.version(taskId) === 0) this.#shared.delete(taskId);
  }

  #forget(taskId: string, shared: Shared): void {
    if (this.#shared.get(taskId) === shared) this.#shared.delete(taskId);
  }
}
