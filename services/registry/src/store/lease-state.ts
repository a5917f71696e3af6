/** The values of the column `standing`: the state of a lease according to the change log. */
export const LEASE_STATE = {
  /** The lease runs, or its end is not yet in the log. */
  running: 0,
  /** The log has the LOST entry for the end of the lease. */
  ended: 1,
  /** The agent of the lease was removed. */
  removed: 2,
} as const;

/**
 * The SQL condition for running leases. The partial index and its statements must use the same condition; otherwise the
 * index is not used.
 */
export const IS_RUNNING = `standing = ${LEASE_STATE.running}`;
