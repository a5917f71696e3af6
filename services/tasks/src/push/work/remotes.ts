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
  putPeerState,
  type Remote,
} from "../store/remote-rows.ts";

const TIMED_OUT = reasonName(ErrorReason.TASK_TIMEOUT);

/**
 * Stores which tasks are at endpoints. The platform can therefore resume them after a restart, and cancel them when
 * their tasks end on the platform. Each change of a row is in the transaction that causes it.
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

  /** Sets the listener for new cancellations that the platform must send to an endpoint. */
  onOwed(listener: () => void): void {
    this.#onOwed = listener;
  }

  /**
   * Sets the listener for tasks whose work at an endpoint is over: the result has arrived, or a cancellation is
   * recorded.
   */
  onEnd(listener: (taskId: string) => void): void {
    this.#onEnd = listener;
  }

  find(taskId: string): Promise<Remote | undefined> {
    return this.#engine.store.read((tx) => openRemote(tx, taskId));
  }

  /**
   * Stores the row of a task before the first call to its endpoint.
   *
   * @throws DeputeError LEASE_LOST, TASK_NOT_FOUND
   */
  async begin(lease: Lease, remote: Omit<Remote, "peerState">): Promise<void> {
    await this.#engine.store.write(async (tx) => {
      const record = await this.#engine.find(tx, lease.taskId);
      if (record === undefined) throw taskNotFound(lease.taskId);
      requireLease(record, lease);
      await insertRemote(tx, remote);
    });
  }

  /** Stores the id of the last relayed event of a task at an endpoint. */
  async note({ remoteId }: Remote, lastEventId: string): Promise<void> {
    await this.#engine.store.write((tx) => noteEvent(tx, remoteId, lastEventId));
  }

  /** Records the state of a task at an A2A agent. */
  async keepState({ remoteId }: Remote, peerState: string): Promise<void> {
    await this.#engine.store.write((tx) => putPeerState(tx, remoteId, peerState));
  }

  /** Deletes the row of a task that has ended at the endpoint, or that the endpoint does not know. */
  async forget({ remoteId }: Remote): Promise<void> {
    await this.#engine.store.write((tx) => deleteRemote(tx, remoteId));
  }

  /** Cancels a task at its endpoint. The task on the platform continues. */
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

  /**
   * Follows a change of a task. When the result arrives, deletes the row of the task at the endpoint. When the task
   * ends without a result, or the attempt times out, records a cancellation.
   */
  async #follow(tx: WriteTx, { after, events }: TaskChange): Promise<void> {
    const { id, status, failure } = after.task;
    if (status === TaskStatus.COMPLETED || status === TaskStatus.IN_REVIEW) {
      await deleteOpenRemote(tx, id);
      tx.afterCommit(() => this.#onEnd(id));
    } else if (isTerminal(status)) {
      await this.#owe(tx, id, failure?.message || failure?.reason || "", this.#clock.now());
    } else if (events.some(isTimedOutAttempt)) {
      // The next attempt begins a new task at the endpoint, so the platform cancels the present task there.
      await this.#owe(tx, id, "the attempt took too long", this.#clock.now());
    }
  }
}

function isTimedOutAttempt({ payload }: TaskChange["events"][number]): boolean {
  return payload.case === "requeued" && payload.value.cause?.reason === TIMED_OUT;
}
