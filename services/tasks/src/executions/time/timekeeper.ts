import type { Clock, Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
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

/** Gives back what was held for executions without a verification in time. The limits of the work are its task's. */
export class ExecutionTimekeeper extends DeadlineLoop {
  constructor({ store, clock, book, timers, log }: TimekeeperOptions) {
    super({
      clock,
      timers,
      log,
      what: "times of executions could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      async look(signal) {
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
