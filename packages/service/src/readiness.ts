import type { StoreState } from "@depute/store";
import type { Logger } from "./log.ts";
import type { ModuleName } from "./names.ts";

type StoreLost = Extract<StoreState, { kind: "lost" }>["error"];

export interface ReadinessOptions {
  readonly log: Logger;
  /** Called once, with the first store that this process can never use again. */
  readonly onLost: (error: StoreLost) => void;
}

/**
 * Determines which services can do their work. A service of this process is ready if its stores are usable. A service
 * of another process is ready if that process reports so.
 */
export class Readiness {
  readonly #options: ReadinessOptions;
  /** The unusable stores of each service. */
  readonly #failing = new Map<ModuleName, Set<string>>();
  /** Whether each service of another process serves. */
  readonly #peers = new Map<ModuleName, boolean>();
  readonly #listeners = new Set<() => void>();
  #isLost = false;

  constructor(options: ReadinessOptions) {
    this.#options = options;
  }

  isReady(name: ModuleName): boolean {
    return !this.#failing.has(name) && this.#peers.get(name) !== false;
  }

  /** Calls the listener after each change of the readiness. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Sets the state of one store of a service in this process. */
  setStore(name: ModuleName, store: string, state: StoreState): void {
    const { log, onLost } = this.#options;
    if (state.kind === "ready") log.info({ service: name, store }, "the store can be used again");
    else log.error({ service: name, store, err: state.error }, "the store cannot be used");
    const failing = this.#failing.get(name) ?? new Set();
    if (state.kind === "ready") failing.delete(store);
    else failing.add(store);
    if (failing.size === 0) this.#failing.delete(name);
    else this.#failing.set(name, failing);
    this.#changed();
    if (state.kind !== "lost" || this.#isLost) return;
    this.#isLost = true;
    onLost(state.error);
  }

  setPeer(name: ModuleName, serves: boolean): void {
    if (this.#peers.get(name) === serves) return;
    this.#peers.set(name, serves);
    this.#changed();
  }

  #changed(): void {
    for (const listener of this.#listeners) listener();
  }
}
