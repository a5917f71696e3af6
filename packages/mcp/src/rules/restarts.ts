/** Milliseconds before the third start in a row; each further failure doubles them. */
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/** A connection that lasted this long ends the row of failures. */
export const STABLE_MS = 60_000;

/**
 * Returns the milliseconds for which a server is not started after its failures. The first failure allows a start at
 * once, because a crash may concern one call alone.
 *
 * @param failures the number of crashes and failed starts in a row
 */
export function restartDelayMs(failures: number): number {
  return failures < 2 ? 0 : Math.min(FIRST_DELAY_MS * 2 ** (failures - 2), MAX_DELAY_MS);
}
