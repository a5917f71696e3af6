import type { Timers } from "@depute/core";
import type { Logger } from "@depute/service";
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
 * proofs. It keeps nothing that the store does not have, so what passed while nobody looked is caught up at the start.
 */
export class SessionTimekeeper {
  readonly #engine: SessionEngine;
  readonly #timers: Timers;
  readonly #log: Logger;
  readonly #reporter: OutcomeReporter;
  #cancel: () => void = () => {};
  #forgottenMs = 0;
  #working: Promise<void> | undefined;
  #closed = false;

  constructor({ engine, reporter, timers, log }: TimekeeperOptions) {
    this.#reporter = reporter;
    this.#engine = engine;
    this.#timers = timers;
    this.#log = log;
  }

  start(): void {
    if (this.#closed || this.#working !== undefined) return;
    this.#cancel();
    this.#working = this.#work().then((waitMs) => {
      this.#working = undefined;
      if (!this.#closed) this.#cancel = this.#timers.after(waitMs, () => this.start());
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#working;
  }

  /** @returns milliseconds to the next look */
  async #work(): Promise<number> {
    try {
      while (!this.#closed && (await this.#engine.applyTime(BATCH)));
      await this.#report();
      await this.#forgetProofs();
      const nextMs = (await this.#engine.earliestDeadline()) ?? Number.POSITIVE_INFINITY;
      return Math.min(Math.max(1, nextMs - this.#engine.clock.now()), MAX_WAIT_MS);
    } catch (error) {
      if (!this.#closed)
        this.#log.error({ err: error }, "time limits of sessions could not be applied; trying again");
      return MAX_WAIT_MS;
    }
  }

  async #forgetProofs(): Promise<void> {
    const nowMs = this.#engine.clock.now();
    if (nowMs - this.#forgottenMs < FORGET_MS) return;
    while (!this.#closed && (await this.#engine.forgetProofs(FORGET_BATCH)));
    this.#forgottenMs = nowMs;
  }

  /** What the registry cannot be told now is told at another look: nothing is lost, and nothing else waits for it. */
  async #report(): Promise<void> {
    const { store } = this.#engine;
    for (const session of await store.read((tx) => sessionsToReport(tx, REPORTS))) {
      if (this.#closed) return;
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
