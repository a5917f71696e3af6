import { ALL_KEYS, type Bus } from "@depute/bus";
import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import { type CurrentCall, currentCall, type Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import type { AuditedCall, AuditedDecision, Decision } from "./rules/audit-record.ts";
import { appendDecisions } from "./store/audit-rows.ts";

/** The topic of wake-ups about new records. */
export const AUDIT_TOPIC = "tokens.audit";

/** Longest time that a decision waits to be written, in milliseconds. */
const FLUSH_MS = 250;
/** Maximum number of decisions in one write. When this many are waiting, they are written immediately. */
const BATCH = 1024;
/** Maximum number of waiting decisions while the store is unavailable. */
const MAX_WAITING = 100_000;

interface AuditOptions {
  store: Store;
  bus: Pick<Bus, "publish">;
  clock: Clock;
  timers: Timers;
  log: Logger;
  maxWaiting?: number;
}

/**
 * The append-only record of every decision on authority. A change and its decisions commit in one transaction.
 * A verification does not wait: its decision joins a batch that is durable within a second. The batch is
 * bounded. While the batch is full, no further decision is made.
 */
export class AuditLog {
  readonly #options: AuditOptions;
  readonly #maxWaiting: number;
  #waiting: AuditedDecision[] = [];
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
  }

  /** Records a decision within the transaction of its change. */
  async write(tx: WriteTx, decision: Decision): Promise<void> {
    await this.#append(tx, [this.#inCall(decision)]);
  }

  /**
   * Requires that the batch has room. Call it before each decision.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  assertRoom(): void {
    if (this.#waiting.length < this.#maxWaiting) return;
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "decisions cannot be recorded now; try again later", {
      metadata: { limit: "audit_waiting", max: String(this.#maxWaiting) },
    });
  }

  /** Records a decision that changes nothing else. The record is durable within a second. */
  add(decision: Decision): void {
    this.#waiting.push(this.#inCall(decision));
    if (this.#waiting.length >= BATCH && !this.#failed) void this.#flush();
    else this.#schedule();
  }

  /** Writes the remaining decisions and ends the batches. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#cancelTimer?.();
    await this.#flushing;
    this.#failed = false;
    while (this.#waiting.length > 0 && !this.#failed) await this.#flush();
    if (this.#waiting.length > 0) {
      this.#options.log.error({ decisions: this.#waiting.length }, "decisions could not be recorded");
    }
  }

  /** Adds the time and the call that this code serves. */
  #inCall(decision: Decision): AuditedDecision {
    const call = currentCall();
    const time = this.#options.clock.now();
    return { ...decision, time, source: OWN_SOURCE, call: call === undefined ? {} : toAuditedCall(call) };
  }

  async #append(tx: WriteTx, decisions: readonly AuditedDecision[]): Promise<void> {
    const { bus, clock } = this.#options;
    await appendDecisions(tx, decisions, clock.now());
    tx.afterCommit(() => bus.publish(AUDIT_TOPIC, ALL_KEYS));
  }

  #schedule(): void {
    if (this.#closed || this.#cancelTimer !== undefined || this.#flushing !== undefined) return;
    this.#cancelTimer = this.#options.timers.after(FLUSH_MS, () => {
      this.#cancelTimer = undefined;
      void this.#flush();
    });
  }

  #flush(): Promise<void> {
    this.#flushing ??= this.#writeSome().finally(() => {
      this.#flushing = undefined;
      if (this.#waiting.length > 0) this.#schedule();
    });
    return this.#flushing;
  }

  /** Writes the oldest waiting decisions. Never rejects: after a failure the decisions stay in the batch, in order. */
  async #writeSome(): Promise<void> {
    const batch = this.#waiting.slice(0, BATCH);
    if (batch.length === 0) return;
    try {
      await this.#options.store.write((tx) => this.#append(tx, batch));
      this.#waiting.splice(0, batch.length);
      this.#failed = false;
    } catch (err) {
      if (!this.#failed) this.#options.log.error({ err }, "decisions cannot be recorded; trying again");
      this.#failed = true;
    }
  }
}

/** The name of this service in its records. */
const OWN_SOURCE = "tokens";

/** Returns the circumstances for a record, without empty members. */
function toAuditedCall({ caller: _, ...call }: CurrentCall): AuditedCall {
  return Object.fromEntries(Object.entries(call).filter(([, value]) => value !== ""));
}
