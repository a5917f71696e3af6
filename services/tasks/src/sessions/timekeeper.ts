import type { Timers } from "@depute/core";
import type { Logger } from "@depute/service";
import type { SessionEngine } from "./engine.ts";

/** Sessions that are moved on in one transaction. */
const BATCH = 100;
/** The longest time without a look, so that deadlines set by other processes are seen; milliseconds. */
const MAX_WAIT_MS = 1000;

/**
 * Stores what time did to sessions: lapsed invitations, silence, ends. It keeps nothing that the store does not have, so
 * what passed while nobody looked is caught up at the start.
 */
export class SessionTimekeeper {
  readonly #engine: SessionEngine;
  readonly #timers: Timers;
  readonly #log: Logger;
  #cancel: () => void = () => {};
  #working: Promise<void> | undefined;
  #closed = false;

  constructor({ engine, timers, log }: { engine: SessionEngine; timers: Timers; log: Logger }) {
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
      const nextMs = (await this.#engine.earliestDeadline()) ?? Number.POSITIVE_INFINITY;
      return Math.min(Math.max(1, nextMs - this.#engine.clock.now()), MAX_WAIT_MS);
    } catch (error) {
      if (!this.#closed)
        this.#log.error({ err: error }, "time limits of sessions could not be applied; trying again");
      return MAX_WAIT_MS;
    }
  }
}
