/** The values of the column `standing`: whether the lease runs, according to the change log. */
export const LEASE_STATE = {
  /** The lease runs, or the log does not have its end yet. */
  running: 0,
  /** The log has the LOST entry for the lease's end. */
  ended: 1,
  /** The agent of the lease was removed. */
  removed: 2,
} as const;

/**
 * The SQL condition for running leases. A statement must repeat the partial index's condition; otherwise the database
 * does not use the index.
 */
export const IS_RUNNING = `standing = ${LEASE_STATE.running}`;
