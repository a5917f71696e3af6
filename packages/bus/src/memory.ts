/**
 * Small values that expire, in memory that the processes of a platform share. A value may be lost at any time, as
 * when the memory restarts. The memory keeps what it is given: it neither encrypts nor reads a value.
 */
export interface SharedMemory {
  /** Whether the memory cannot be reached now. A call then fails soon, or succeeds after a short outage. */
  readonly isAway: boolean;

  /**
   * Adds all entries of one owner, or none of them. An entry replaces an earlier one of its id. Entries whose time has
   * passed do not count.
   *
   * @returns the limit that has no room for the entries; undefined if they were added
   * @throws MemoryAwayError; the entries may or may not have been added
   */
  add(owner: string, entries: readonly MemoryEntry[], limits: MemoryLimits): Promise<LimitName | undefined>;

  /**
   * Returns the values of ids in their order; undefined for an id without a value.
   *
   * @throws MemoryAwayError
   */
  get(ids: readonly string[]): Promise<(string | undefined)[]>;

  /** Removes entries. Idempotent. @throws MemoryAwayError */
  remove(ids: readonly string[]): Promise<void>;

  /**
   * Returns some of the entries, with the time at which each was added, and the cursor of the next ones. The first
   * cursor, and the one after the last entries, is `0`.
   *
   * @throws MemoryAwayError
   */
  list(cursor: string): Promise<{ readonly next: string; readonly entries: readonly ListedEntry[] }>;

  /** Ends the connection. Idempotent. */
  close(): Promise<void>;
}

export interface MemoryEntry {
  readonly id: string;
  readonly value: string;
  /** The number of bytes that count against the limit. */
  readonly bytes: number;
  /** Epoch milliseconds at which the memory forgets the value. */
  readonly expireMs: number;
}

export interface ListedEntry {
  readonly id: string;
  /** Epoch milliseconds, by the clock of the process that added the entry. */
  readonly addMs: number;
}

/** The greatest sums over all entries of all processes. */
export interface MemoryLimits {
  readonly bytes: number;
  readonly number: number;
  /** Number of entries of one owner. */
  readonly ofOwner: number;
}

export type LimitName = keyof MemoryLimits;

/** The order in which limits are compared. The first one without room is the answer. */
export const LIMIT_NAMES: readonly LimitName[] = ["bytes", "number", "ofOwner"];

/** Thrown when the shared memory does not answer. A later call may succeed. */
export class MemoryAwayError extends Error {
  override readonly name = "MemoryAwayError";
}
