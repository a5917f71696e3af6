/**
 * Memory that the processes of a platform share. It holds small values that expire. A value may be lost at any time,
 * for example at a restart of the memory. The memory neither encrypts nor interprets a value.
 */
export interface SharedMemory {
  /**
   * Whether the process cannot reach the memory now. A call then waits a short time for the memory, and fails with
   * MemoryAwayError if the outage continues.
   */
  readonly isAway: boolean;

  /**
   * Adds all entries of one owner, or none of them. An entry replaces an earlier entry with the same id. The limits do
   * not count expired entries.
   *
   * @returns the limit that the entries would exceed; undefined if the memory added the entries
   * @throws MemoryAwayError; the memory may have added the entries nevertheless
   */
  add(owner: string, entries: readonly MemoryEntry[], limits: MemoryLimits): Promise<LimitName | undefined>;

  /**
   * Returns the value of each id, in the order of `ids`; undefined for an id without a value.
   *
   * @throws MemoryAwayError
   */
  get(ids: readonly string[]): Promise<(string | undefined)[]>;

  /**
   * Removes the entries with these ids. A repeated call changes nothing.
   *
   * @throws MemoryAwayError
   */
  remove(ids: readonly string[]): Promise<void>;

  /**
   * Returns a page of the entries of all owners, and the cursor of the next page. The cursor of the first page is `0`.
   * After the last page, `next` is `0`.
   *
   * @throws MemoryAwayError
   */
  list(cursor: string): Promise<{ readonly next: string; readonly entries: readonly ListedEntry[] }>;

  /** Ends the connection. A repeated call does nothing. */
  close(): Promise<void>;
}

export interface MemoryEntry {
  readonly id: string;
  readonly value: string;
  /** The size of the entry, which counts against the limit `bytes`. */
  readonly bytes: number;
  /** Epoch milliseconds at which the memory forgets the value. */
  readonly expireMs: number;
}

export interface ListedEntry {
  readonly id: string;
  /** The time at which the entry was added: epoch milliseconds by the clock of the process that added it. */
  readonly addMs: number;
}

/** The maximum values of sums over the entries of all processes. */
export interface MemoryLimits {
  readonly bytes: number;
  readonly number: number;
  /** Maximum number of entries of one owner. */
  readonly ofOwner: number;
}

export type LimitName = keyof MemoryLimits;

/** The order in which `add` compares limits. `add` returns the first limit that the entries would exceed. */
export const LIMIT_NAMES: readonly LimitName[] = ["bytes", "number", "ofOwner"];

/** Thrown when the shared memory does not answer. A later call may succeed. */
export class MemoryAwayError extends Error {
  override readonly name = "MemoryAwayError";
}
