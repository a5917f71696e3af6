import type { Clock } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { LivenessView } from "./rules/liveness.ts";
import { atStart, countedFrom, type GuardState, judge } from "./rules/removal-guard.ts";
import { countLeases } from "./store/leases.ts";

/** Leases are counted at most this often, milliseconds. */
const COUNT_EVERY_MS = 1_000;

/**
 * Says by what time leases are judged. It counts when it is asked, so that the answer after a mass expiry is already
 * guarded, and no more often than once a second.
 */
export class RemovalGuard {
  readonly #clock: Clock;
  #state: GuardState;
  #countedAt: number | undefined;

  /** @param lastUp when the registry last ran, epoch ms */
  constructor(clock: Clock, lastUp: number | undefined) {
    this.#clock = clock;
    this.#state = atStart(lastUp, clock.now());
  }

  get state(): GuardState {
    return this.#state;
  }

  async view(tx: ReadTx): Promise<LivenessView> {
    const now = this.#clock.now();
    if (!this.#isCounted(now)) {
      this.#countedAt = now;
      const counts = await countLeases(tx, { from: countedFrom(this.#state, now), now });
      this.#state = judge(this.#state, counts, now);
    }
    return this.#viewAt(now);
  }

  /** The same without a look at the store; undefined when it is time for one. */
  get counted(): LivenessView | undefined {
    const now = this.#clock.now();
    return this.#isCounted(now) ? this.#viewAt(now) : undefined;
  }

  #isCounted(now: number): boolean {
    return this.#countedAt !== undefined && Math.abs(now - this.#countedAt) < COUNT_EVERY_MS;
  }

  #viewAt(now: number): LivenessView {
    return { now, asOf: this.#state.holds ? Math.min(this.#state.asOf, now) : now };
  }
}
