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
   * Whether a plain message that contains a held result is refused. If not, the message is delivered and marked in the
   * lineage.
   */
  readonly refuseHeldResults: boolean;
  /** Time limit in milliseconds of a task without another limit. */
  readonly taskTimeoutMs: number;
  /** Returns the action to take on a task whose holder reports an error code. */
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

/**
 * The tasks whose parties were already notified in a transaction, so that observers do not notify the parties again.
 */
export class NotifiedTasks {
  readonly #tasks = new WeakMap<WriteTx, Set<string>>();

  /** @param taskId the engine's id of the task */
  add(tx: WriteTx, taskId: string): void {
    const tasks = this.#tasks.get(tx) ?? new Set();
    tasks.add(taskId);
    this.#tasks.set(tx, tasks);
  }

  has(tx: WriteTx, taskId: string): boolean {
    return this.#tasks.get(tx)?.has(taskId) === true;
  }
}
