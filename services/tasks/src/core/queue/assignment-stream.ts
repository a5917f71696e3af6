import type { Assignment, Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import type { Engine } from "../engine/engine.ts";
import { advance } from "../rules/advance.ts";
import { holdsLease } from "../rules/lease.ts";
import { afterRelease } from "../rules/retry.ts";
import type { WorkerStream } from "./claim.ts";

/** What is handed out to one stream of a worker's, until it is sent on; what is not goes back. */
export class AssignmentStream {
  readonly worker: WorkerStream;
  /** Whether it holds all that it may, as far as is known. */
  isFull = false;
  /** How much more it may hold at least, as far as is known. */
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

  /** Takes what was handed out to it. */
  deliver(assignments: readonly Assignment[]): void {
    this.#ready.push(...assignments);
    if (this.#isClosed) this.#giveBack();
    else this.#wake();
  }

  /** The assignments as they come, until the stream is closed. */
  assignments(): AsyncIterator<Assignment> {
    return { next: () => this.#next() };
  }

  /** Ends the stream once what was handed out to it is sent. */
  finish(): void {
    if (this.#isClosed || this.#isFinishing) return;
    this.#isFinishing = true;
    this.#onClose();
    this.#wake();
  }

  /** Ends the stream. What was handed out and not sent waits again, and costs no attempt. */
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
    // A task that could not be put back waits again when its lease runs out.
    for (const { lease } of this.#ready)
      if (lease !== undefined) putBack(this.#engine, lease).catch(() => {});
    this.#ready = [];
  }
}

/** Puts a task back that was never sent, unless its lease has ended otherwise. */
async function putBack(engine: Engine, lease: Lease): Promise<void> {
  await engine.change(lease.taskId, (before, nowMs) =>
    holdsLease(before, lease)
      ? advance(before, { payload: afterRelease(before.task), by: "worker" }, nowMs)
      : { record: before, events: [] },
  );
}
