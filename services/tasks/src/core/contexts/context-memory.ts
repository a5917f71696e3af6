import { DeputeError, ErrorReason } from "@depute/core";
import type { ContextRecord } from "../rules/context.ts";

/** The part of a context that no disk may hold. */
export interface Held {
  readonly data: Uint8Array;
  /** Digest of the request that shared the context. */
  readonly digest: string;
}

/** A context in memory, and the epoch milliseconds at which it was added. */
export interface HeldSince {
  readonly id: string;
  readonly addMs: number;
}

/**
 * The memory for the data of contexts that may not be persisted. It keeps data until the context expires or `remove` is
 * called. The row of a context states its readers and its expiry. The memory is bounded, and a new context never
 * displaces another.
 *
 * Transactions call `find` and `add`. These methods do no I/O, because a transaction may not wait for the network. In a
 * memory outside the process, these methods throw NotFetched for data that was not yet fetched or stored. `using`
 * then fetches or stores the data, and runs the transaction again.
 */
export interface ContextMemory {
  /** True while the memory does not answer. Dispatch then passes over the tasks whose contexts are in this memory. */
  readonly isAway: boolean;

  /**
   * Returns the data of a context; undefined if the memory has lost it.
   *
   * @throws NotFetched, ContextsAway
   */
  find(id: string): Held | undefined;

  /**
   * Stores the data of one owner's contexts: all of them or none. Call this method last in a transaction, because the
   * memory does not roll back. After a failed transaction, the data stays until `sweep`.
   *
   * @throws DeputeError LIMIT_EXCEEDED; INVALID_REQUEST if the service has replicas, but no memory that all of them
   * share
   * @throws NotFetched
   */
  add(records: readonly ContextRecord[]): void;

  /**
   * Removes the data of a context in the background. Never throws. If the removal fails, `sweep` removes the data
   * later.
   */
  remove(id: string): void;

  /**
   * Runs a function whose transactions call `find` and `add`. Fetches or stores the data that they lack, and then runs
   * the function again, so it may run several times.
   */
  using<T>(run: () => Promise<T>): Promise<T>;

  /**
   * Returns those of `ids` whose contexts have lost their data.
   *
   * @throws ContextsAway
   */
  lostOf(ids: readonly string[]): Promise<string[]>;

  /**
   * Removes data without a row: data of failed transactions, and data whose removal failed.
   *
   * @param orphans returns the ids of those contexts in `held` that have no row, or whose row does not say that the
   * data is in memory
   */
  sweep(orphans: (held: readonly HeldSince[]) => Promise<readonly string[]>): Promise<void>;

  close(): void;
}

/** Thrown in a transaction that needs or adds data outside this process. `using` runs the transaction again. */
export class NotFetched extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  /** Contexts to fetch. */
  readonly ids: readonly string[];
  /** Contexts to store. */
  readonly records: readonly ContextRecord[];

  constructor(ids: readonly string[], records: readonly ContextRecord[]) {
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, "a context was not fetched in time; call again", {
      metadata: { service: "redis" },
    });
    this.ids = ids;
    this.records = records;
  }
}

/** Thrown while the memory of contexts does not answer. A later call may succeed. */
export class ContextsAway extends DeputeError<typeof ErrorReason.DEPENDENCY_UNAVAILABLE> {
  constructor(cause?: unknown) {
    const message = "Redis, which holds contexts that may not be persisted, does not answer; call again";
    super(ErrorReason.DEPENDENCY_UNAVAILABLE, message, { metadata: { service: "redis" }, cause });
  }
}

/** Collects the contexts that several reads lack, so that one fetch brings all of them. */
export class MissingData {
  readonly #ids = new Set<string>();

  /** Returns the result of a read; undefined if the read lacks data. */
  async orMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof NotFetched) || error.records.length > 0) throw error;
      for (const id of error.ids) this.#ids.add(id);
      return undefined;
    }
  }

  /** @throws NotFetched if a read lacked data */
  requireNone(): void {
    if (this.#ids.size > 0) throw new NotFetched([...this.#ids], []);
  }
}
