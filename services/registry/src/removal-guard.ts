import type { Clock } from "@depute/core";
import type { ReadTx } from "@depute/store";
import type { LivenessView } from "./rules/agent.ts";
import { countStart, type GuardState, initialGuardState, nextGuardState } from "./rules/removal-guard.ts";
import { countLeases } from "./store/leases.ts";

/** Minimum time between two counts of leases, in milliseconds. */
const COUNT_INTERVAL_MS = 1_000;

/**
 * Supplies the reference time of liveness checks. The guard counts the leases when a check needs the time and the last
 * count is at least a second old. So even the first check after many leases have expired at once uses a fresh count.
 */
export class RemovalGuard {
  readonly #clock: Clock;
  #state: GuardState;
  #countedTime: number | undefined;

  /**
   * Creates a guard.
   *
   * @param lastUp the time at which the registry last ran, epoch milliseconds; undefined at its first start
   */
  constructor(clock: Clock, lastUp: number | undefined) {
    this.#clock = clock;
    this.#state = initialGuardState(lastUp, clock.now());
  }

  get state(): GuardState {
    return this.#state;
  }

  async view(tx: ReadTx): Promise<LivenessView> {
    const now = this.#clock.now();
    if (!this.#isCounted(now)) {
      this.#countedTime = now;
      const counts = await countLeases(tx, { from: countStart(this.#state, now), now });
      this.#state = nextGuardState(this.#state, counts, now);
    }
    return this.#viewAt(now);
  }

  /**
   * The liveness view of the last count of leases; undefined if that count is too old. Then call `view`, which counts
   * in the store.
   */
  get cachedView(): LivenessView | undefined {
    const now = this.#clock.now();
    return this.#isCounted(now) ? this.#viewAt(now) : undefined;
  }

  #isCounted(now: number): boolean {
    return this.#countedTime !== undefined && Math.abs(now - this.#countedTime) < COUNT_INTERVAL_MS;
  }

  #viewAt(now: number): LivenessView {
    return { now, asOf: this.#state.holds ? Math.min(this.#state.asOf, now) : now };
  }
}
