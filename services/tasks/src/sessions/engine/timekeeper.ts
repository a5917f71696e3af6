import type { Timers } from "@depute/core";
import { DeadlineLoop, type Logger } from "@depute/service";
import { markReported, readParties, sessionsToReport } from "../store/session-rows.ts";
import type { SessionEngine } from "./engine.ts";
import type { OutcomeReporter } from "./outcomes.ts";

/** Sessions that are moved on in one transaction. */
const BATCH = 100;
/** The longest time without a look, so that deadlines set by other processes are seen; milliseconds. */
const MAX_WAIT_MS = 1000;

/** Sessions of which the registry is told in one look. */
const REPORTS = 20;

/** Milliseconds between looks for proofs to forget, and how many go in one transaction. */
const FORGET_MS = 30_000;
const FORGET_BATCH = 1000;

export interface TimekeeperOptions {
  readonly engine: SessionEngine;
  readonly reporter: OutcomeReporter;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * Tells the registry what came of sessions, stores what time did to them (lapsed invitations, silence, ends) and forgets
 * proofs.
 */
export class SessionTimekeeper extends DeadlineLoop {
  readonly #engine: SessionEngine;
  readonly #log: Logger;
  readonly #reporter: OutcomeReporter;
  #forgottenMs = 0;

  constructor({ engine, reporter, timers, log }: TimekeeperOptions) {
    super({
      clock: engine.clock,
      timers,
      log,
      what: "time limits of sessions could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      look: async (signal) => {
        while (!signal.aborted && (await engine.applyTime(BATCH)));
        await this.#report(signal);
        await this.#forgetProofs(signal);
        return engine.earliestDeadline();
      },
    });
    this.#engine = engine;
    this.#log = log;
    this.#reporter = reporter;
  }

  async #forgetProofs(signal: AbortSignal): Promise<void> {
    const nowMs = this.#engine.clock.now();
    if (nowMs - this.#forgottenMs < FORGET_MS) return;
    while (!signal.aborted && (await this.#engine.forgetProofs(FORGET_BATCH)));
    this.#forgottenMs = nowMs;
  }

  /** A session that the registry does not take now waits for another look, and nothing else waits for it. */
  async #report(signal: AbortSignal): Promise<void> {
    const { store } = this.#engine;
    for (const session of await store.read((tx) => sessionsToReport(tx, REPORTS))) {
      if (signal.aborted) return;
      try {
        const { registryIds } = await store.read((tx) => readParties(tx, session.sessionId));
        await this.#reporter.report(session, registryIds);
      } catch (error) {
        this.#log.debug(
          { err: error, session: session.sessionId },
          "the outcome of a session could not be told",
        );
        return;
      }
      await store.write((tx) => markReported(tx, session.sessionId));
    }
  }
}
