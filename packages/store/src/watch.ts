import { DeputeError, ErrorReason, randomBytes, type Timers } from "@depute/core";
import { isStoreFailure, StoreLostError } from "./errors.ts";
import { FOUND } from "./row.ts";
import type { Store } from "./store.ts";

/** The last observed state of a store. */
export type StoreState =
  | { readonly kind: "ready" }
  /** Reads or writes fail at the moment. The store may recover. */
  | { readonly kind: "unavailable"; readonly error: Error }
  /** This process can never use the store again, so the process must end. */
  | { readonly kind: "lost"; readonly error: StoreLostError };

/** Milliseconds between checks: CHECK_MS for a usable store, RETRY_MS for an unusable one. */
const CHECK_MS = 2_000;
const RETRY_MS = 250;
/** Milliseconds after which an unanswered check counts as a failure. */
const CHECK_LIMIT_MS = 3_000;

/** Bytes that a probe must write before the store counts as recovered. */
const PROBE_BYTES = 64 * 1024;

/**
 * Returns the SQL that creates the table to which a recovery probe writes. `bytesType` is the database's type for
 * bytes.
 */
export function probeTable(bytesType: "BLOB" | "BYTEA"): string {
  return `CREATE TABLE IF NOT EXISTS store_probe (one INTEGER PRIMARY KEY, filler ${bytesType} NOT NULL)`;
}

const PROBE =
  "INSERT INTO store_probe (one, filler) VALUES (1, ?) ON CONFLICT (one) DO UPDATE SET filler = excluded.filler";

export interface StoreWatchOptions {
  /** Receives each change of the state. Without this listener, the watch runs no checks. */
  readonly onState?: ((state: StoreState) => void) | undefined;
  readonly timers: Timers;
}

/** The functions that check a store. */
export interface StoreChecks {
  /** Checks the store at little cost. Rejects if the store has a fault. */
  readonly check: () => Promise<void>;
  readonly store: Pick<Store, "read" | "write">;
  /** Called on recovery, before the listener. */
  readonly onRecovery?: () => void;
}

/**
 * Tracks whether a store is usable. A failure of any read or write makes the store unavailable at once. The store
 * recovers when a read and a probe write of PROBE_BYTES succeed. The watch also checks an idle store.
 */
export class StoreWatch {
  readonly #onState: ((state: StoreState) => void) | undefined;
  readonly #timers: Timers;
  #state: StoreState = { kind: "ready" };
  #checks: StoreChecks | undefined;
  #isChecking = false;
  /** Number of failures so far. A check that began before the last failure does not show a recovery. */
  #failures = 0;
  #cancel: () => void = () => {};
  #isClosed = false;

  constructor({ onState, timers }: StoreWatchOptions) {
    this.#onState = onState;
    this.#timers = timers;
  }

  start(checks: StoreChecks): void {
    this.#checks = checks;
    if (this.#state.kind !== "lost") this.#schedule(this.#state.kind === "ready" ? CHECK_MS : 0);
  }

  /** Makes the store unavailable, or lost for a StoreLostError. Call this method for every failure of the store. */
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
    if (this.#isClosed || this.#onState === undefined || this.#checks === undefined) return;
    this.#cancel = this.#timers.after(ms, () => void this.#check());
  }

  /** Checks the store, and schedules the next check. The promise never rejects. */
  async #check(): Promise<void> {
    if (this.#isChecking || this.#checks === undefined) return;
    this.#isChecking = true;
    const { check, store, onRecovery } = this.#checks;
    const failuresBefore = this.#failures;
    const wasReady = this.#state.kind === "ready";
    try {
      await this.#within(wasReady ? check() : probe(store));
      if (!wasReady && this.#failures === failuresBefore && !this.#isClosed) {
        onRecovery?.();
        this.#become({ kind: "ready" });
      }
    } catch (error) {
      if (!isOverloadOrClose(error)) this.suspect(error as Error);
    } finally {
      this.#isChecking = false;
      const { kind } = this.#state;
      if (kind !== "lost") this.#schedule(kind === "ready" ? CHECK_MS : wasReady ? 0 : RETRY_MS);
    }
  }

  #within(looking: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const cancel = this.#timers.after(CHECK_LIMIT_MS, () =>
        reject(new Error(`the store did not answer within ${CHECK_LIMIT_MS} ms`)),
      );
      looking.then(resolve, reject).finally(cancel);
    });
  }
}

async function probe(store: StoreChecks["store"]): Promise<void> {
  const filler = randomBytes(PROBE_BYTES);
  await store.write((tx) => tx.run(PROBE, [filler]));
  await store.read((tx) => tx.get(FOUND, "SELECT one FROM store_probe"));
}

/** Whether the error only means that the store is overloaded or closing, which does not count as a failure. */
function isOverloadOrClose(error: unknown): boolean {
  return (
    !isStoreFailure(error) &&
    error instanceof DeputeError &&
    (error.reason === ErrorReason.LIMIT_EXCEEDED || error.reason === ErrorReason.SHUTTING_DOWN)
  );
}
