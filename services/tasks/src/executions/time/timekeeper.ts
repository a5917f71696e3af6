import type { Clock, Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { WriteTx } from "@depute/store";
import type { TaskStore } from "../../core/index.ts";
import type { ExecutionBook } from "../book/book.ts";
import { dueExecutions, earliestDue, findExecution } from "../store/execution-rows.ts";

/** Executions that are moved on in one transaction. */
const BATCH = 100;
/** The longest time without a look, so that times set by other processes are seen; milliseconds. */
const MAX_WAIT_MS = 1000;

export interface TimekeeperOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly book: ExecutionBook;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Gives back what was held for executions that nobody verified in time. The times of the work itself are limits of its task. It
 * keeps nothing that the store does not have.
 */
export class ExecutionTimekeeper {
  readonly #options: TimekeeperOptions;
  #cancel: () => void = () => {};
  #working: Promise<void> | undefined;
  #closed = false;

  constructor(options: TimekeeperOptions) {
    this.#options = options;
    options.book.onDue(() => this.#work());
  }

  start(): void {
    this.#work();
  }

  /** Resolves when nothing is being done; for tests, whose clocks stand still. */
  async idle(): Promise<void> {
    while (this.#working !== undefined) await this.#working;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.idle();
  }

  #work(): void {
    if (this.#closed || this.#working !== undefined) return;
    this.#cancel();
    this.#working = this.#applyTime().then((waitMs) => {
      this.#working = undefined;
      if (!this.#closed) this.#cancel = this.#options.timers.after(waitMs, () => this.#work());
    });
  }

  /** @returns milliseconds to the next look */
  async #applyTime(): Promise<number> {
    const { store, clock, log } = this.#options;
    try {
      for (let more = true; more && !this.#closed; ) {
        const due = await store.read((tx) => dueExecutions(tx, clock.now(), BATCH));
        if (due.length > 0) {
          await store.write(async (tx) => {
            for (const requestId of due) await this.#apply(tx, requestId);
          });
        }
        more = due.length === BATCH;
      }
      const nextMs = (await store.read(earliestDue)) ?? Number.POSITIVE_INFINITY;
      return Math.min(Math.max(1, nextMs - clock.now()), MAX_WAIT_MS);
    } catch (error) {
      if (!this.#closed) log.error({ err: error }, "times of executions could not be applied; trying again");
      return MAX_WAIT_MS;
    }
  }

  async #apply(tx: WriteTx, requestId: string): Promise<void> {
    const record = await findExecution(tx, requestId);
    if (record === undefined) return;
    await this.#options.book.settleOverdue(tx, record);
  }
}
