/** What has been said of a lease. */
export const STANDING = {
  /** Not ended, as far as watchers know. */
  running: 0,
  /** Watchers were told that it ended. */
  ended: 1,
  /** Its agent was removed. */
  removed: 2,
} as const;

/** Of leases that have not ended: the condition of a partial index, and of the statement that uses it. */
export const IS_RUNNING = `standing = ${STANDING.running}`;
