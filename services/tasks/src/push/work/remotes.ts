import { TaskStatus } from "@depute/contracts/depute/tasks/v1/task_pb";
import type { Lease } from "@depute/contracts/depute/tasks/v1/worker_service_pb";
import { type Clock, ErrorReason, reasonName } from "@depute/core";
import type { WriteTx } from "@depute/store";
import {
  isTerminal,
  requireLease,
  type TaskChange,
  type TaskEngine,
  taskNotFound,
} from "../../core/index.ts";
import {
  deleteOpenRemote,
  deleteRemote,
  insertRemote,
  noteEvent,
  openRemote,
  oweCancel,
  type Remote,
} from "../store/remote-rows.ts";

const TIMED_OUT = reasonName(ErrorReason.TASK_TIMEOUT);

/**
 * What goes on at endpoints, and so has to be taken up again after a restart and called off when its task is. Rows are
 * written in the transactions of what they follow from.
 */
export class Remotes {
  readonly #engine: TaskEngine;
  readonly #clock: Clock;
  #onOwed = () => {};
  #onEnd: (taskId: string) => void = () => {};

  constructor(engine: TaskEngine, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
    engine.observe((tx, change) => this.#follow(tx, change));
  }

  /** Tells the listener when an endpoint has to be told of a cancellation. */
  onOwed(listener: () => void): void {
    this.#onOwed = listener;
  }

  /** Tells the listener when nothing more comes of a task's work at an endpoint. */
  onEnd(listener: (taskId: string) => void): void {
    this.#onEnd = listener;
  }

  find(taskId: string): Promise<Remote | undefined> {
    return this.#engine.store.read((tx) => openRemote(tx, taskId));
  }

  /** Notes work before it is handed over. @throws DeputeError LEASE_LOST */
  async begin(lease: Lease, remote: Remote): Promise<void> {
    await this.#engine.store.write(async (tx) => {
      const record = await this.#engine.find(tx, lease.taskId);
      if (record === undefined) throw taskNotFound(lease.taskId);
      requireLease(record, lease);
      await insertRemote(tx, remote);
    });
  }

  /** Notes how far the endpoint's events were relayed. */
  async note({ remoteId }: Remote, lastEventId: string): Promise<void> {
    await this.#engine.store.write((tx) => noteEvent(tx, remoteId, lastEventId));
  }

  /** The endpoint has ended it, or knows nothing of it. */
  async forget({ remoteId }: Remote): Promise<void> {
    await this.#engine.store.write((tx) => deleteRemote(tx, remoteId));
  }

  /** It is to be called off at the endpoint, though its task goes on. */
  async callOff({ taskId }: Remote, reason: string): Promise<void> {
    await this.#engine.store.write((tx) => this.#owe(tx, taskId, reason, this.#clock.now()));
  }

  async #owe(tx: WriteTx, taskId: string, reason: string, nowMs: number): Promise<void> {
    await oweCancel(tx, taskId, reason, nowMs);
    tx.afterCommit(() => {
      this.#onEnd(taskId);
      this.#onOwed();
    });
  }

  /** What becomes of a task becomes of its work at an endpoint. */
  async #follow(tx: WriteTx, { after, events }: TaskChange): Promise<void> {
    const { id, status, failure } = after.task;
    if (status === TaskStatus.COMPLETED || status === TaskStatus.IN_REVIEW) {
      await deleteOpenRemote(tx, id);
      tx.afterCommit(() => this.#onEnd(id));
    } else if (isTerminal(status)) {
      await this.#owe(tx, id, failure?.message || failure?.reason || "", this.#clock.now());
    } else if (events.some(isTimedOutAttempt)) {
      // The next attempt is to be a new one there, too.
      await this.#owe(tx, id, "the attempt took too long", this.#clock.now());
    }
  }
}

function isTimedOutAttempt({ payload }: TaskChange["events"][number]): boolean {
  return payload.case === "requeued" && payload.value.cause?.reason === TIMED_OUT;
}
