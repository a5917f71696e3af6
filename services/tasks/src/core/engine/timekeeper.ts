import type { Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import type { Engine } from "./engine.ts";

/** Tasks that are moved on in one transaction. */
const BATCH = 100;

/** The longest time without a look, so that deadlines set by other processes are seen; milliseconds. */
const MAX_WAIT_MS = 1000;

export interface TimekeeperOptions {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Enforces the time limits of tasks. Several processes may do it at once: a limit that was applied has not passed any more.
 */
export class Timekeeper extends DeadlineLoop {
  constructor({ engine, timers, log }: TimekeeperOptions) {
    super({
      clock: engine.clock,
      timers,
      log,
      what: "time limits could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      async look(signal) {
        for (let due = await engine.due(BATCH); due.length > 0; due = await engine.due(BATCH)) {
          await engine.applyTime(due);
          if (signal.aborted) break;
        }
        return engine.earliestDeadline();
      },
    });
    engine.onDeadline((atMs) => this.notice(atMs));
  }
}
