import type { Client } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import type { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { CapAction, Clock, Timers } from "@depute/core";
import type { WakeUps } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import type { Participants } from "./participants.ts";

/** The settings of CAP. */
export interface CapSettings {
  /** Whether a plain message from an overseer to the delegator counts as approval. */
  readonly plainApproval: boolean;
  /**
   * Whether the service refuses a plain message that contains a held result. If false, the service delivers the message
   * and marks it in the lineage.
   */
  readonly refuseHeldResults: boolean;
  /** The total time limit, in milliseconds, of each task that a message delegates. */
  readonly taskTimeoutMs: number;
  /** Returns the action for an error code that the task's holder reports. */
  readonly actionOf: (errorCode: number) => CapAction;
}

/** The dependencies of CAP's handlers. */
export interface CapContext {
  readonly engine: TaskEngine;
  readonly policy: Client<typeof PolicyService>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly bus: Bus;
  /** Milliseconds between two polls of a stream, for changes without a wake-up. */
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly participants: Participants;
  readonly settings: CapSettings;
  readonly inboxWakeUps: WakeUps;
  readonly notified: NotifiedTasks;
}

/** The tasks whose parties a transaction has already notified, so that observers do not notify them again. */
export class NotifiedTasks {
  readonly #tasks = new WeakMap<WriteTx, Set<string>>();

  /** @param taskId the task's id in the task engine */
  add(tx: WriteTx, taskId: string): void {
    const tasks = this.#tasks.get(tx) ?? new Set();
    tasks.add(taskId);
    this.#tasks.set(tx, tasks);
  }

  has(tx: WriteTx, taskId: string): boolean {
    return this.#tasks.get(tx)?.has(taskId) === true;
  }
}
