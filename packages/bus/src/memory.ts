/**
 * Small values that expire, in memory that the processes of a platform share. A value may be lost at any time, for
 * example at a restart of the memory. The memory neither encrypts nor interprets a value.
 */
export interface SharedMemory {
  /** Whether the process cannot reach the memory now. A call then fails soon, or succeeds after a short outage. */
  readonly isAway: boolean;

  /**
   * Adds all entries of one owner, or none of them. An entry replaces an earlier entry with the same id. The limits do
   * not count expired entries.
   *
   * @returns the limit that has no room for the entries; undefined if the memory added them
   * @throws MemoryAwayError; the memory may have added the entries nevertheless
   */
  add(owner: string, entries: readonly MemoryEntry[], limits: MemoryLimits): Promise<LimitName | undefined>;

  /**
   * Returns the values of ids, in the order of the ids; undefined for an id without a value.
   *
   * @throws MemoryAwayError
   */
  get(ids: readonly string[]): Promise<(string | undefined)[]>;

  /**
   * Removes entries. A repeated call changes nothing.
   *
   * @throws MemoryAwayError
   */
  remove(ids: readonly string[]): Promise<void>;

  /**
   * Returns a page of the entries, with the time at which each entry was added, and the cursor of the next page. The
   * cursor of the first page is `0`. After the last page, `next` is `0`.
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
  /** The size that counts against the limit of bytes. */
  readonly bytes: number;
  /** Epoch milliseconds at which the memory forgets the value. */
  readonly expireMs: number;
}

export interface ListedEntry {
  readonly id: string;
  /** Epoch milliseconds, by the clock of the process that added the entry. */
  readonly addMs: number;
}

/** The maximum sums over all entries of all processes. */
export interface MemoryLimits {
  readonly bytes: number;
  readonly number: number;
  /** Maximum number of entries of one owner. */
  readonly ofOwner: number;
}

export type LimitName = keyof MemoryLimits;

/** The order in which `add` compares limits. `add` returns the first limit without room. */
export const LIMIT_NAMES: readonly LimitName[] = ["bytes", "number", "ofOwner"];

/** Thrown when the shared memory does not answer. A later call may succeed. */
export class MemoryAwayError extends Error {
  override readonly name = "MemoryAwayError";
}
