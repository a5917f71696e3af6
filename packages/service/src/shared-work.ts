import { ALL_KEYS, type Bus } from "@depute/bus";
import type { Clock, Timers } from "@depute/core";
import { type Lease, Leases, type Store } from "@depute/store";
import type { Logger } from "./log.ts";

/**
 * The topic on which replicas wake the holder of a lease. The key is `SERVICE/LEASE`, or `SERVICE/` when a replica has
 * released its leases.
 */
const WORK_TOPIC = "work";

/** The lease of background work that one replica at a time does. */
export interface WorkLease extends Lease {
  /** Wakes the work at the replica that holds the lease. A wake-up may be lost, so the work must also poll. */
  wakeHolder(): void;
  /** Registers a listener, which runs when another replica wakes this work. */
  onWake(listener: () => void): void;
}

export interface SharedWorkOptions {
  /** The name of the service, such as `tasks`. */
  readonly service: string;
  readonly store: Store;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly log: Logger;
}

/**
 * The leases of one service's background work. If the service has replicas, the replica with a lease does the work of
 * this lease. If the service has no replicas, its only process does all the work.
 */
export class SharedWork {
  readonly #service: string;
  readonly #bus: Bus;
  readonly #leases: Leases;
  readonly #isShared: boolean;
  readonly #wakes = new Map<string, Set<() => void>>();
  #unsubscribe = () => {};

  constructor({ service, store, bus, clock, timers, log }: SharedWorkOptions) {
    this.#service = service;
    this.#bus = bus;
    this.#isShared = store.sharing !== undefined;
    const releaseKey = `${service}/`;
    this.#leases = new Leases({
      store,
      clock,
      timers,
      onError: (err, message) => log.warn({ err }, message),
      onReleased: () => bus.publish(WORK_TOPIC, releaseKey),
    });
    if (!this.#isShared) return;
    this.#unsubscribe = bus.subscribe(WORK_TOPIC, (key) => {
      if (key === releaseKey || key === ALL_KEYS) this.#leases.check();
      if (key !== ALL_KEYS) wake(this.#wakes.get(key));
      else for (const listeners of this.#wakes.values()) wake(listeners);
    });
  }

  /**
   * Begins to compete for the lease of some work. Returns undefined if the service has no replicas, so that no lease is
   * needed.
   */
  lease(name: string): WorkLease | undefined {
    if (!this.#isShared) return undefined;
    const lease = this.#leases.compete(name);
    const key = `${this.#service}/${name}`;
    const listeners = this.#wakes.get(key) ?? new Set();
    this.#wakes.set(key, listeners);
    return {
      get isHeld() {
        return lease.isHeld;
      },
      get epoch() {
        return lease.epoch;
      },
      requireHeld: (tx, epoch) => lease.requireHeld(tx, epoch),
      onTaken: (listener) => lease.onTaken(listener),
      onLost: (listener) => lease.onLost(listener),
      wakeHolder: () => this.#bus.publish(WORK_TOPIC, key),
      onWake: (listener) => void listeners.add(listener),
    };
  }

  /** The names of the leases that this process holds. */
  get held(): readonly string[] {
    return this.#leases.held;
  }

  /** Releases all leases. Call it after the work has ended, and before the store is closed. */
  async close(): Promise<void> {
    this.#unsubscribe();
    await this.#leases.close();
  }
}

function wake(listeners: Iterable<() => void> | undefined): void {
  for (const listener of listeners ?? []) listener();
}
