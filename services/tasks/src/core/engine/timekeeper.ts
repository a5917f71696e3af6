import type { Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { Engine } from "./engine.ts";

/** Maximum number of tasks to which one transaction applies time limits. */
const BATCH = 100;

/**
 * Maximum milliseconds between two reads of the store, so that this process notices deadlines that other processes set.
 */
const MAX_WAIT_MS = 1000;

export interface TimekeeperOptions {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Enforces the time limits of tasks. Several processes may do this at the same time, because an applied limit is no
 * longer due.
 */
export class Timekeeper extends DeadlineLoop {
  constructor({ engine, timers, log }: TimekeeperOptions) {
    super({
      clock: engine.clock,
      timers,
      log,
      failureMessage: "time limits could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      async runDueWork(signal) {
        // Most runs find nothing due, so they read the store once.
        const deadlineMs = await engine.earliestDeadline();
        if (deadlineMs === undefined || deadlineMs > engine.clock.now()) return deadlineMs;
        for (let due = await engine.due(BATCH); due.length > 0; due = await engine.due(BATCH)) {
          await engine.applyTime(due);
          if (signal.aborted) break;
        }
        return engine.earliestDeadline();
      },
    });
    engine.onDeadline(this);
  }
}
