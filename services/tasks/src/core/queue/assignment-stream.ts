import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Engine } from "../engine/engine.ts";
import { advance } from "../rules/advance.ts";
import { holdsLease } from "../rules/lease.ts";
import { afterRelease } from "../rules/retry.ts";
import type { WorkerStream } from "./claim.ts";

/** The assignments of one worker stream, from dispatch to sending. Unsent assignments return to the queue. */
export class AssignmentStream {
  readonly worker: WorkerStream;
  /** Whether the stream's worker holds as many tasks as the last dispatch allowed. */
  isFull = false;
  /**
   * The number of further tasks that the last dispatch allowed this stream; 0 for none, or if the number is unknown.
   */
  room = 0;
  readonly #engine: Engine;
  readonly #onClose: () => void;
  #ready: Assignment[] = [];
  #isClosed = false;
  #isFinishing = false;
  #wake = () => {};

  constructor(worker: WorkerStream, engine: Engine, onClose: () => void) {
    this.worker = worker;
    this.#engine = engine;
    this.#onClose = onClose;
  }

  /** Queues dispatched assignments for sending. */
  deliver(assignments: readonly Assignment[]): void {
    this.#ready.push(...assignments);
    if (this.#isClosed) this.#giveBack();
    else this.#wake();
  }

  /** Yields each assignment when it is ready, until the stream closes. */
  assignments(): AsyncIterator<Assignment> {
    return { next: () => this.#next() };
  }

  /** Ends the stream after it has sent its queued assignments. */
  finish(): void {
    if (this.#isClosed || this.#isFinishing) return;
    this.#isFinishing = true;
    this.#onClose();
    this.#wake();
  }

  /**
   * Ends the stream. Unsent tasks return to the queue, and their attempt does not count towards the maximum of
   * attempts.
   */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    if (!this.#isFinishing) this.#onClose();
    this.#giveBack();
    this.#wake();
  }

  async #next(): Promise<IteratorResult<Assignment>> {
    for (;;) {
      if (this.#isClosed) return { done: true, value: undefined };
      const value = this.#ready.shift();
      if (value !== undefined) return { done: false, value };
      if (this.#isFinishing) return { done: true, value: undefined };
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  #giveBack(): void {
    // If this return to the queue fails, the task becomes pending again when its lease expires.
    for (const { lease } of this.#ready)
      if (lease !== undefined) putBack(this.#engine, lease).catch(() => {});
    this.#ready = [];
  }
}

/** Puts an unsent task back into the queue, unless its lease has ended in another way. */
async function putBack(engine: Engine, lease: Lease): Promise<void> {
  await engine.change(lease.taskId, (before, nowMs) =>
    holdsLease(before, lease)
      ? advance(before, { payload: afterRelease(before.task), by: "worker" }, nowMs)
      : { record: before, events: [] },
  );
}
