import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { TaskStore } from "../../core/index.ts";
import type { ExecutionBook } from "../book/book.ts";
import { dueExecutions, earliestDue, findExecution } from "../store/execution-rows.ts";

/** Maximum number of executions whose payments one transaction settles. */
const BATCH = 100;
/**
 * Maximum milliseconds between two reads of the store, so that this process notices deadlines that other processes set.
 */
const MAX_WAIT_MS = 1000;

export interface TimekeeperOptions {
  readonly store: TaskStore;
  readonly clock: Clock;
  readonly book: ExecutionBook;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Settles the payment of an execution if no verification arrived in time: the buyer pays nothing. The task engine
 * enforces the deadlines of the work.
 */
export class ExecutionTimekeeper extends DeadlineLoop {
  constructor({ store, clock, book, timers, log }: TimekeeperOptions) {
    super({
      clock,
      timers,
      log,
      failureMessage: "times of executions could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      async runDueWork(signal) {
        // Most runs find nothing due, so they read the store once.
        const dueMs = await store.read(earliestDue);
        if (dueMs === undefined || dueMs > clock.now()) return dueMs;
        for (let more = true; more && !signal.aborted; ) {
          const due = await store.read((tx) => dueExecutions(tx, clock.now(), BATCH));
          if (due.length > 0) {
            await store.write(async (tx) => {
              for (const requestId of due) {
                const record = await findExecution(tx, requestId);
                if (record !== undefined) await book.settleOverdue(tx, record);
              }
            });
          }
          more = due.length === BATCH;
        }
        return store.read(earliestDue);
      },
    });
    book.onDue(() => this.wake());
  }
}
