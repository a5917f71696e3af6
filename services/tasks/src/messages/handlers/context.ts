import type { Client } from "@connectrpc/connect";
import type { Bus } from "@depute/bus";
import type { PolicyService } from "@depute/contracts/depute/registry/v1/policy_service_pb";
import type { CapAction, Clock, Timers } from "@depute/core";
import type { WakeUps } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TaskEngine } from "../../core/index.ts";
import type { Participants } from "./participants.ts";

/** What CAP is set to. */
export interface CapSettings {
  /** Whether an overseer's plain message to the delegator approves. */
  readonly plainApproval: boolean;
  /** Whether a plain message that carries a held result is refused; it is marked in the lineage otherwise. */
  readonly refuseHeldResults: boolean;
  /** How long a task may take that nothing else bounds, milliseconds. */
  readonly taskTimeoutMs: number;
  /** What becomes of a task whose holder reports this code. */
  readonly actionOf: (errorCode: number) => CapAction;
}

/** What CAP's handlers work with. */
export interface CapContext {
  readonly engine: TaskEngine;
  readonly policy: Client<typeof PolicyService>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly bus: Bus;
  /** Milliseconds between looks of a stream that nothing wakes. */
  readonly pollMs: number;
  /** Aborts when the process drains. */
  readonly stopping: AbortSignal;
  readonly participants: Participants;
  readonly settings: CapSettings;
  readonly inboxWakeUps: WakeUps;
  readonly told: Told;
}

/** The tasks of which a transaction tells by itself: nobody has to be told of them again. */
export class Told {
  readonly #tasks = new WeakMap<WriteTx, Set<string>>();

  /** @param taskId the engine's */
  add(tx: WriteTx, taskId: string): void {
    const tasks = this.#tasks.get(tx) ?? new Set();
    tasks.add(taskId);
    this.#tasks.set(tx, tasks);
  }

  has(tx: WriteTx, taskId: string): boolean {
    return this.#tasks.get(tx)?.has(taskId) === true;
  }
}
