import type { Timers } from "@depute/core";
import { DeadlineLoop, type Logger, type WorkLease } from "@depute/service";
import { markReported, readParties, sessionsToReport } from "../store/session-rows.ts";
import type { SessionEngine } from "./engine.ts";
import type { OutcomeReporter } from "./outcomes.ts";

/** Maximum number of sessions that one transaction changes. */
const BATCH = 100;
/**
 * Maximum wait in milliseconds between two reads of the store, so that this process notices deadlines that other
 * processes set.
 */
const MAX_WAIT_MS = 1000;

/** Maximum number of sessions whose outcomes one run of the timekeeper reports to the registry. */
const REPORTS = 20;

/**
 * Milliseconds between two purges of expired proofs (FORGET_MS), and the maximum number of proofs that one
 * transaction deletes (FORGET_BATCH).
 */
const FORGET_MS = 30_000;
const FORGET_BATCH = 1000;

export interface TimekeeperOptions {
  readonly engine: SessionEngine;
  readonly reporter: OutcomeReporter;
  readonly timers: Timers;
  readonly log: Logger;
  /**
   * The lease of this work; absent without replicas. Only its holder polls for the deadlines that other replicas
   * set.
   */
  readonly lease?: WorkLease | undefined;
}

/**
 * Stores the effects of deadlines (lapsed invitations, silence, ends of sessions), reports the outcomes of ended
 * sessions to the registry, and deletes the records of expired proofs.
 */
export class SessionTimekeeper extends DeadlineLoop {
  readonly #engine: SessionEngine;
  readonly #log: Logger;
  readonly #reporter: OutcomeReporter;
  #forgottenMs = 0;

  constructor({ engine, reporter, timers, log, lease }: TimekeeperOptions) {
    super({
      clock: engine.clock,
      timers,
      log,
      lease,
      failureMessage: "time limits of sessions could not be applied",
      maxWaitMs: MAX_WAIT_MS,
      runDueWork: async (signal) => {
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

  /** Reports outcomes to the registry. Stops at the first failed report. The next run repeats this report. */
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
          "the outcome of a session could not be reported to the registry; the next run repeats the report",
        );
        return;
      }
      await store.write((tx) => markReported(tx, session.sessionId));
    }
  }
}
