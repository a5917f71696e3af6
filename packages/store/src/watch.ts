import { randomBytes } from "node:crypto";
import { DeputeError, ErrorReason, systemTimers, type Timers } from "@depute/core";
import { isStoreFailure, StoreLostError } from "./errors.ts";
import type { Store } from "./store.ts";

/** Whether a store can be used, as far as it is known. */
export type StoreState =
  | { readonly kind: "ready" }
  /** Not now: reads or writes fail. It may come back. */
  | { readonly kind: "unavailable"; readonly error: Error }
  /** Never again by this process, which has to end. */
  | { readonly kind: "lost"; readonly error: StoreLostError };

/** Milliseconds between looks while all is well, and while it is not. */
const LOOK_MS = 2_000;
const RETRY_MS = 250;
/** Milliseconds after which a look without an answer counts as a failure. */
const LOOK_LIMIT_MS = 3_000;

/** Bytes that have to fit the store before it counts as usable again after a failure. */
const PROBE_BYTES = 64 * 1024;

/** The table of the probe, for each database's own type of bytes. */
export function probeTable(bytesType: "BLOB" | "BYTEA"): string {
  return `CREATE TABLE IF NOT EXISTS store_probe (one INTEGER PRIMARY KEY, filler ${bytesType} NOT NULL)`;
}

const PROBE =
  "INSERT INTO store_probe (one, filler) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET filler = excluded.filler";

export interface StoreWatchOptions {
  /** Told of each change. Without it nothing is watched. */
  readonly onState?: ((state: StoreState) => void) | undefined;
  readonly timers?: Timers | undefined;
}

/** How the store is looked at. */
export interface StoreLooks {
  /** Cheap: is anything wrong? */
  readonly look: () => Promise<void>;
  readonly store: Pick<Store, "read" | "write">;
  /** Called when the store can be used again, before the listener. */
  readonly onBack?: () => void;
}

/**
 * Knows whether a store can be used. A failure of any read or write makes it unavailable at once; it counts as usable again
 * when a write of some size and a read have succeeded. It is also looked at while nobody uses it.
 */
export class StoreWatch {
  readonly #onState: ((state: StoreState) => void) | undefined;
  readonly #timers: Timers;
  #state: StoreState = { kind: "ready" };
  #looks: StoreLooks | undefined;
  #isLooking = false;
  /** Failures so far: a look that began before the last one proves nothing. */
  #failures = 0;
  #cancel: () => void = () => {};
  #isClosed = false;

  constructor({ onState, timers = systemTimers }: StoreWatchOptions) {
    this.#onState = onState;
    this.#timers = timers;
  }

  start(looks: StoreLooks): void {
    this.#looks = looks;
    if (this.#state.kind !== "lost") this.#schedule(this.#state.kind === "ready" ? LOOK_MS : 0);
  }

  /** To be called with every failure of the store. */
  suspect(error: Error): void {
    if (this.#isClosed || this.#state.kind === "lost") return;
    this.#failures++;
    if (error instanceof StoreLostError) {
      this.#cancel();
      this.#become({ kind: "lost", error });
    } else if (this.#state.kind === "ready") {
      this.#become({ kind: "unavailable", error });
      this.#schedule(0);
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #become(state: StoreState): void {
    this.#state = state;
    this.#onState?.(state);
  }

  #schedule(ms: number): void {
    this.#cancel();
    if (this.#isClosed || this.#onState === undefined || this.#looks === undefined) return;
    this.#cancel = this.#timers.after(ms, () => void this.#look());
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    if (this.#isLooking || this.#looks === undefined) return;
    this.#isLooking = true;
    const { look, store, onBack } = this.#looks;
    const failuresBefore = this.#failures;
    const wasReady = this.#state.kind === "ready";
    try {
      await this.#within(wasReady ? look() : prove(store));
      if (!wasReady && this.#failures === failuresBefore && !this.#isClosed) {
        onBack?.();
        this.#become({ kind: "ready" });
      }
    } catch (error) {
      if (!saysNothing(error)) this.suspect(error as Error);
    } finally {
      this.#isLooking = false;
      const { kind } = this.#state;
      if (kind !== "lost") this.#schedule(kind === "ready" ? LOOK_MS : wasReady ? 0 : RETRY_MS);
    }
  }

  #within(looking: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#timers.after(LOOK_LIMIT_MS, () =>
        reject(new Error(`the store did not answer within ${LOOK_LIMIT_MS} ms`)),
      );
      looking.then(resolve, reject).finally(cancel);
    });
  }
}

async function prove(store: StoreLooks["store"]): Promise<void> {
  const filler = randomBytes(PROBE_BYTES);
  await store.write((tx) => tx.run(PROBE, [filler]));
  await store.read((tx) => tx.get("SELECT one FROM store_probe"));
}

/** A store with too much to do, or one that closes, is no worse than it was. */
function saysNothing(error: unknown): boolean {
  return (
    !isStoreFailure(error) &&
    error instanceof DeputeError &&
    (error.reason === ErrorReason.LIMIT_EXCEEDED || error.reason === ErrorReason.SHUTTING_DOWN)
  );
}
