import type { Timers } from "@depute/core";
import type { Logger } from "@depute/service";
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
 * Enforces the time limits: looks at the earliest deadline, sleeps until then, and moves the tasks on that met theirs.
 * It keeps nothing in memory that the store does not have, so what passed while nobody looked is caught up at the
 * start, and several processes may do it at once: a limit that was applied has not passed any more.
 */
export class Timekeeper {
  readonly #engine: Engine;
  readonly #timers: Timers;
  readonly #log: Logger;
  #cancel: () => void = () => {};
  #wakeMs = Number.POSITIVE_INFINITY;
  #working: Promise<void> | undefined;
  #closed = false;

  constructor({ engine, timers, log }: TimekeeperOptions) {
    this.#engine = engine;
    this.#timers = timers;
    this.#log = log;
    engine.onDeadline((atMs) => this.#notice(atMs));
  }

  /** Catches up, and goes on from there. */
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

  #notice(atMs: number): void {
    if (this.#working === undefined && atMs < this.#wakeMs) this.#sleepUntil(atMs);
  }

  #sleepUntil(atMs: number): void {
    this.#cancel();
    if (this.#closed) return;
    const nowMs = this.#engine.clock.now();
    const waitMs = Math.min(Math.max(0, atMs - nowMs), MAX_WAIT_MS);
    this.#wakeMs = nowMs + waitMs;
    this.#cancel = this.#timers.after(waitMs, () => this.#work());
  }

  #work(): void {
    if (this.#working !== undefined || this.#closed) return;
    this.#cancel();
    this.#working = this.#applyTime().then((nextMs) => {
      this.#working = undefined;
      this.#sleepUntil(nextMs);
    });
  }

  /** @returns when to look again, epoch milliseconds */
  async #applyTime(): Promise<number> {
    try {
      for (let due = await this.#engine.due(BATCH); due.length > 0; due = await this.#engine.due(BATCH)) {
        await this.#engine.applyTime(due);
        if (this.#closed) break;
      }
      return (await this.#engine.earliestDeadline()) ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      if (!this.#closed) this.#log.error({ err: error }, "time limits could not be applied; trying again");
      return Number.POSITIVE_INFINITY;
    }
  }
}
