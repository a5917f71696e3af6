import { type Clock, DeputeError, ErrorReason, type Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { Store, WriteTx } from "@depute/store";
import { appendDecisions, type Decision } from "./store/audit-rows.ts";

/** Milliseconds until a decision that waits is written. */
const FLUSH_MS = 250;
/** Decisions written together; as many that wait are written at once. */
const BATCH = 1024;
/** Decisions that may wait while the store cannot take them. */
const MAX_WAITING = 100_000;

interface AuditOptions {
  store: Store;
  clock: Clock;
  timers: Timers;
  log: Logger;
  maxWaiting?: number;
}

/**
 * The append-only record of every decision on authority.
 *
 * What is part of a change is written in the change's own transaction. Verifications do not wait for theirs: they are
 * batched, durable within a second, and bounded: once no more can wait, nothing is decided any more.
 */
export class AuditLog {
  readonly #options: AuditOptions;
  readonly #maxWaiting: number;
  #waiting: (Decision & { time: number })[] = [];
  #cancelTimer: (() => void) | undefined;
  #flushing: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(options: AuditOptions) {
    this.#options = options;
    this.#maxWaiting = options.maxWaiting ?? MAX_WAITING;
  }

  /** Records a decision within the transaction that it belongs to. */
  async write(tx: WriteTx, decision: Decision): Promise<void> {
    await appendDecisions(tx, [{ ...decision, time: this.#options.clock.now() }]);
  }

  /**
   * Makes sure that there is room for one more; asked before a decision is made.
   *
   * @throws DeputeError LIMIT_EXCEEDED
   */
  assertRoom(): void {
    if (this.#waiting.length < this.#maxWaiting) return;
    throw new DeputeError(ErrorReason.LIMIT_EXCEEDED, "decisions cannot be recorded at present", {
      metadata: { limit: "audit_waiting", max: String(this.#maxWaiting) },
    });
  }

  /** Records a decision that changes nothing; it is durable within a second. */
  add(decision: Decision): void {
    this.#waiting.push({ ...decision, time: this.#options.clock.now() });
    if (this.#waiting.length >= BATCH && !this.#failed) void this.#flush();
    else this.#schedule();
  }

  /** Writes what waits. */
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

  /** Never rejects: what could not be written waits on, in its order. */
  async #writeSome(): Promise<void> {
    const batch = this.#waiting.slice(0, BATCH);
    if (batch.length === 0) return;
    try {
      await this.#options.store.write((tx) => appendDecisions(tx, batch));
      this.#waiting.splice(0, batch.length);
      this.#failed = false;
    } catch (err) {
      if (!this.#failed) this.#options.log.error({ err }, "decisions cannot be recorded; trying again");
      this.#failed = true;
    }
  }
}
